import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CODES, type Code } from '../src/errors/index.ts'

/** The rules of the house that a machine can hold: layers, doors, length, leftovers, dead paths in the pages. */
const ROOT = join(import.meta.dirname, '..')
const SRC = join(ROOT, 'src')

/** Layer of each folder; imports point only downwards. */
const LAYERS: Readonly<Record<string, number>> = {
  domain: 0,
  errors: 0,
  runtime: 0,
  lease: 1,
  admission: 2,
  outbound: 2,
  store: 2,
  cache: 2,
  pricing: 3,
  idempotency: 3,
  outbox: 3,
  orders: 4,
  http: 5,
  lifecycle: 5,
  telemetry: 5,
  config: 6,
}

const MAX_LINES = 300

function filesUnder(folder: string, ending: RegExp): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && ending.test(entry.name) && !entry.parentPath.includes('node_modules'))
    .map(entry => join(entry.parentPath, entry.name))
}

interface Import {
  readonly from: string
  readonly to: string
}

/** What breaks a rule about one import, in words; undefined when nothing does. Paths are relative to src. */
function layerViolation({ from, to }: Import): string | undefined {
  const [source = '', ...sourceRest] = from.split('/')
  const [target = '', ...targetRest] = to.split('/')
  if (sourceRest.length === 0) {
    return source === 'main.ts' || targetRest.at(-1) === 'index.ts'
      ? undefined
      : `${from} enters ${to} past its index`
  }
  if (source === target) return undefined
  if (targetRest.length === 0) return `${from} reaches up to ${to}`
  const file = targetRest.join('/')
  if (source === 'telemetry' && file === 'channels.ts') return undefined
  if (source === 'config' && file === 'options.ts') return undefined
  const [above, below] = [LAYERS[source], LAYERS[target]]
  if (above === undefined || below === undefined) return `${from} or ${to} is in a folder without a layer`
  if (below >= above) return `${from} (layer ${above}) imports ${to} (layer ${below})`
  return file === 'index.ts' ? undefined : `${from} enters ${to} past its index`
}

function importsOf(file: string): Import[] {
  const text = readFileSync(file, 'utf8')
  const matches = text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)
  return [...matches].map(([, path = '']) => ({
    from: relative(SRC, file),
    to: relative(SRC, normalize(join(dirname(file), path))),
  }))
}

describe('layers', () => {
  it('imports point only downwards and enter folders through their index', () => {
    const violations = filesUnder(SRC, /\.ts$/).flatMap(importsOf).map(layerViolation).filter(Boolean)
    expect(violations).toEqual([])
  })

  it.each([
    ['store/sqlite/store.ts', 'http/index.ts'],
    ['store/port.ts', 'outbound/index.ts'],
    ['http/server.ts', 'lifecycle/index.ts'],
    ['orders/place-order.ts', 'store/sqlite/store.ts'],
    ['admission/gate.ts', 'telemetry/channels.ts'],
    ['lease/lease.ts', 'app.ts'],
    ['app.ts', 'store/port.ts'],
    ['newcomer/thing.ts', 'runtime/index.ts'],
  ])('%s may not import %s', (from, to) => {
    expect(layerViolation({ from, to })).toBeTypeOf('string')
  })

  it('only main.ts reads the environment and the command line, or exits', () => {
    const offenders = filesUnder(SRC, /\.ts$/)
      .filter(file => relative(SRC, file) !== 'main.ts')
      .filter(file => /process\.(env|argv|exit)\b/.test(withoutComments(readFileSync(file, 'utf8'))))
    expect(offenders).toEqual([])
  })

  it('mechanisms take their time from the clock that they are given', () => {
    const offenders = filesUnder(SRC, /\.ts$/)
      .filter(file => !['main.ts', 'runtime/clock.ts'].includes(relative(SRC, file)))
      .filter(file =>
        /\b(setTimeout|setInterval|Date\.now|performance\.now)\(/.test(
          withoutComments(readFileSync(file, 'utf8')),
        ),
      )
    expect(offenders).toEqual([])
  })
})

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
}

describe('files', () => {
  const own = [SRC, join(ROOT, 'test'), join(ROOT, 'acceptance')].flatMap(folder =>
    filesUnder(folder, /\.ts$/),
  )

  it(`none is longer than ${MAX_LINES} lines without a reason in its header`, () => {
    const offenders = own.filter(file => {
      const text = readFileSync(file, 'utf8')
      return text.split('\n').length > MAX_LINES && !/Long because/.test(text.slice(0, 2000))
    })
    expect(offenders.map(file => relative(ROOT, file))).toEqual([])
  })

  it('no leftover markers', () => {
    const marker = new RegExp(['TO', 'DO|FIX', 'ME|XX', 'X'].join(''))
    const offenders = own.filter(file => marker.test(readFileSync(file, 'utf8')))
    expect(offenders).toEqual([])
  })

  it('no folder is called by a name that says nothing', () => {
    const offenders = own.filter(file =>
      /(^|\/)(utils?|helpers?|managers?|common|misc)(\/|\.ts$)/.test(relative(ROOT, file)),
    )
    expect(offenders).toEqual([])
  })
})

describe('pages', () => {
  const pages = ['README.md', 'CHANGELOG.md', 'config/README.md']

  it('name only files that exist', () => {
    const dead = pages.flatMap(page => {
      const text = readFileSync(join(ROOT, page), 'utf8')
      const named = [
        ...text.matchAll(/`((?:src|config|test|acceptance)\/[A-Za-z0-9_./-]+)`|\]\((?!https?:)([^)#]+)\)/g),
      ]
      return named
        .map(([, code, link]) => code ?? join(dirname(page), link ?? ''))
        .filter(path => !existsAt(path))
        .map(path => `${page}: ${path}`)
    })
    expect(dead).toEqual([])
  })

  it('the status table of the README has every code, beside its status, and no other', () => {
    const rows = readFileSync(join(ROOT, 'README.md'), 'utf8').matchAll(/^\| ([\d, ]+) \| ([^|]*) \|/gm)
    const told = [...rows].flatMap(([, statuses = '', codes = '']) =>
      [...codes.matchAll(/`([a-z-]+)`/g)].map(([, code = '']) => ({ code, statuses: statuses.split(', ') })),
    )
    const wrong = told.filter(({ code, statuses }) => {
      return !(code in CODES) || !statuses.includes(String(CODES[code as Code].status))
    })
    expect(wrong).toEqual([])
    expect(told.map(({ code }) => code).sort()).toEqual(Object.keys(CODES).sort())
  })

  it('name only commands that package.json has', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>
    }
    const dead = pages.flatMap(page => {
      const text = readFileSync(join(ROOT, page), 'utf8')
      return [...text.matchAll(/npm run ([a-z:]+)/g)]
        .map(([, name]) => name ?? '')
        .filter(name => !(name in scripts))
    })
    expect(dead).toEqual([])
  })
})

function existsAt(path: string): boolean {
  try {
    readdirSync(join(ROOT, path))
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOTDIR'
  }
}
