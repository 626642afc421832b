/** One instruction of a Dockerfile, its continued lines joined. */
export interface Instruction {
  readonly verb: string
  readonly rest: string
}

export function instructionsOf(text: string): Instruction[] {
  return text
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter(line => line.trim() !== '')
    .map(line => {
      const [, verb = '', rest = ''] = /^(\S+)\s+(.*)$/.exec(line.trim()) ?? []
      return { verb: verb.toUpperCase(), rest: rest.replace(/\s+/g, ' ') }
    })
}

/** `NAME=value NAME="value with blanks"` of ENV and LABEL. */
export function pairsOf(instructions: readonly Instruction[], verb: string): Record<string, string> {
  const rests = instructions.filter(instruction => instruction.verb === verb).map(({ rest }) => rest)
  const pairs = rests.join(' ').matchAll(/([\w.]+)=(?:"([^"]*)"|(\S+))/g)
  return Object.fromEntries([...pairs].map(([, name, quoted, bare]) => [name, quoted ?? bare ?? '']))
}

/** Whether `.dockerignore` lets a path into the build: the last line that names it, or a folder above, decides. */
export function letsIn(ignore: string, path: string): boolean {
  let allowed = true
  for (const line of ignore.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const pattern = line.replace(/^!/, '')
    if (pattern === '*' || path === pattern || path.startsWith(`${pattern}/`)) allowed = line.startsWith('!')
  }
  return allowed
}
