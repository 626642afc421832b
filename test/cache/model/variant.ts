import { registerHooks } from 'node:module'

/** One replacement in one file; its old text must stand there exactly once, so that it cannot rot unseen. */
export interface Edit {
  /** Relative to the folder of the entry. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

// What stands in a test file goes through the test runner's own loader, which knows no hooks; what stands here does not.
const IMPORT = 'data:text/javascript,export const load = url => import(url)'

let variants = 0

/**
 * The module at `entry`, and all of its folder that it imports, as they would be with the edits made. The loader hands
 * the edited text over in place of the file, under a name of its own: nothing is written, and no other importer sees it.
 */
export async function loadVariant<Module>(entry: URL, edits: readonly Edit[]): Promise<Module> {
  const folder = new URL('.', entry).href
  const mark = `?variant=${++variants}`
  const missing = new Set(edits)
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context)
      const isOfFolder = context.parentURL?.endsWith(mark) && resolved.url.startsWith(folder)
      return isOfFolder ? { ...resolved, url: resolved.url + mark } : resolved
    },
    load(url, context, next) {
      if (!url.endsWith(mark)) return next(url, context)
      const loaded = next(url, { ...context, format: 'module-typescript' })
      const file = url.slice(folder.length, -mark.length)
      let source = String(loaded.source)
      for (const edit of edits.filter(edit => edit.file === file)) {
        const parts = source.split(edit.find)
        if (parts.length !== 2) throw new Error(`stands ${parts.length - 1} times in ${file}: ${edit.find}`)
        source = parts.join(edit.replace)
        missing.delete(edit)
      }
      return { ...loaded, source }
    },
  })
  try {
    const { load } = (await import(/* @vite-ignore */ IMPORT)) as { load: (url: string) => Promise<Module> }
    const loaded = await load(entry.href + mark)
    for (const { file } of missing) throw new Error(`${file} was never loaded`)
    return loaded
  } finally {
    hooks.deregister()
  }
}
