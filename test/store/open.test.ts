import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { StoreOpenError } from '../../src/store/index.ts'
import { openForWriting } from '../../src/store/sqlite/database.ts'
import { GroupCommit } from '../../src/store/sqlite/group-commit.ts'
import { CLAIM, type Flat, packWrite } from '../../src/store/sqlite/protocol.ts'
import { type StartThread, startWorker } from '../../src/store/sqlite/thread.ts'
import { never, orderWrite } from '../support/order-write.ts'
import { SqlitePlace } from '../support/sqlite-place.ts'

describe('opening the store', () => {
  let place: SqlitePlace
  beforeEach(() => {
    place = new SqlitePlace()
  })
  afterEach(() => place.dispose())

  /** The refusal, once every thread that was started for it is gone. */
  async function refusal(path: string, reader?: URL): Promise<string> {
    let running = 0
    const counted: StartThread = (file, data, listener) => {
      running++
      return startWorker(reader && file.pathname.endsWith('/reader.ts') ? reader : file, data, {
        onAnswer: answer => listener.onAnswer(answer),
        onExit: reason => {
          running--
          listener.onExit(reason)
        },
      })
    }
    const error: unknown = await place.open({ path }, {}, counted).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(StoreOpenError)
    expect(running).toBe(0)
    return (error as Error).message
  }

  it('leaves no writer behind when there is no reader to be had', async () => {
    expect(await refusal(place.path, new URL('./no-such-file.ts', import.meta.url))).toMatch(/no-such-file/)
  })

  it('makes the folder and the file', async () => {
    const path = join(place.folder, 'a', 'b', 'c.db')
    const store = await place.open({ path })
    expect(await store.commit(orderWrite(), never())).toEqual({ kind: 'created' })
  })

  it.each([
    ['FULL', 2],
    ['EXTRA', 3],
    ['NORMAL', 1],
    ['OFF', 0],
  ] as const)('waits for the disk as it is told: %s', (synchronous, level) => {
    const db = openForWriting({ path: place.path, synchronous, busyTimeoutMs: 77 })
    const pragma = (name: string) => db.pragma(name, { simple: true })
    expect([pragma('journal_mode'), pragma('synchronous'), pragma('busy_timeout')]).toEqual([
      'wal',
      level,
      77,
    ])
    db.close()
  })

  it('bounds the log', () => {
    const db = openForWriting({ path: place.path, synchronous: 'OFF', busyTimeoutMs: 100 })
    const slots = new Int32Array(new SharedArrayBuffer(400))
    const group = new GroupCommit(db, slots)
    const largest: number[] = []
    for (let groups = 0; groups < 100; groups++) {
      const writes: Flat = []
      for (let n = 0; n < 100; n++) packWrite(writes, orderWrite({ json: 'x'.repeat(2_000) }))
      slots.fill(CLAIM.queued)
      group.answer(writes)
      largest.push(statSync(`${place.path}-wal`).size)
    }
    db.close()
    expect(Math.max(...largest)).toBeGreaterThan(8_000_000)
    expect(Math.max(...largest)).toBeLessThan(16_500_000)
  })

  it('folds the log into the database when it closes', async () => {
    const store = await place.open()
    await store.commit(orderWrite(), never())
    await store.close()
    expect(readdirSync(join(place.folder, 'data'))).toEqual(['punctual.db'])
    expect(place.rows()).toEqual({ keys: 1, orders: 1, events: 1 })
  })

  it('refuses a path under a file', async () => {
    const file = join(place.folder, 'file')
    writeFileSync(file, '')
    for (const path of [join(file, 'x.db'), join(file, 'deeper', 'x.db')]) {
      expect(await refusal(path)).toBe(
        `cannot open the store at ${path}: a part of its path is a file, not a folder`,
      )
    }
  })

  it.runIf(process.platform === 'linux')('refuses a folder that nobody can make', async () => {
    const path = '/proc/punctual/deeper/x.db'
    expect(await refusal(path)).toBe(`cannot open the store at ${path}: its folder cannot be made`)
  })

  it('refuses a folder', async () => {
    expect(await refusal(place.folder)).toBe(`cannot open the store at ${place.folder}: it is a folder`)
  })

  it.each([
    ['long', 'garbage '.repeat(1_000)],
    ['short', 'x'],
  ])('refuses a file that is no database, and leaves it as it is: %s', async (_, content) => {
    const path = join(place.folder, 'garbage')
    writeFileSync(path, content)
    expect(await refusal(path)).toBe(`cannot open the store at ${path}: it is not a database`)
  })

  it('refuses a newer database, and one of another program', async () => {
    const store = await place.open()
    await store.close()
    const db = place.connect()
    db.pragma('user_version = 99')
    db.close()
    expect(await refusal(place.path)).toMatch(
      /: it has schema version 99, newer than the \d+ that this release knows$/,
    )

    const foreign = join(place.folder, 'foreign.db')
    new Database(foreign).exec('CREATE TABLE theirs (x)').close()
    expect(await refusal(foreign)).toBe(
      `cannot open the store at ${foreign}: it is a database of another program`,
    )
  })

  it('refuses what it may not read or write', async () => {
    const file = join(place.folder, 'mine.db')
    const folder = join(place.folder, 'mine')
    writeFileSync(file, '')
    mkdirSync(folder)
    chmodSync(place.folder, 0o777)
    for (const path of [file, folder]) chmodSync(path, 0o500)
    for (const path of [file, join(folder, 'x.db'), join(folder, 'deeper', 'x.db')]) {
      // Root may do everything, so somebody else tries.
      const child = openElsewhere(path, process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {})
      child.stdin.write('go')
      expect(await text(child.stdout)).toBe('up permission denied')
    }
  })

  it('waits for another that has the whole file to itself at this moment', () => {
    const path = join(place.folder, 'busy.db')
    const other = new Database(path)
    other.exec('BEGIN EXCLUSIVE')
    let waits = 0
    const wait = vi.spyOn(Atomics, 'wait').mockImplementation(() => {
      if (++waits === 3) other.close()
      return 'timed-out'
    })
    try {
      openForWriting({ path, synchronous: 'FULL', busyTimeoutMs: 100 }).close()
    } finally {
      wait.mockRestore()
    }
    expect(waits).toBe(3)
  })

  it('opens all the same when another does not let go of it, degraded, and works once it has', async () => {
    const path = join(place.folder, 'busy.db')
    const other = new Database(path)
    other.exec('BEGIN EXCLUSIVE')
    const store = await place.open({ path })
    expect(store.degraded()).toBe('another process holds the store locked')
    expect(await store.commit(orderWrite(), never())).toEqual({ kind: 'unavailable' })
    expect(await store.findOrder('tenant', 'id', never())).toEqual({ kind: 'unavailable' })
    const recovered = place.nextHealth()
    other.close()
    expect(await recovered).toBeUndefined()
    const write = orderWrite()
    expect(await store.commit(write, never())).toEqual({ kind: 'created' })
    expect(await store.findOrder(write.tenant, write.order.id, never())).toMatchObject({ kind: 'found' })
  }, 20_000)

  it.each([
    ['a writer that waits', true],
    ['none that does', false],
  ])(
    'beside %s a reader that is refused does not matter: %s',
    async (_, waits) => {
      const path = join(place.folder, 'x.db')
      const other = new Database(path)
      if (waits) other.exec('BEGIN EXCLUSIVE')
      const broken: StartThread = (file, data, listener) => {
        const isReader = file.pathname.endsWith('/reader.ts')
        return startWorker(isReader ? new URL('./no-such-file.ts', import.meta.url) : file, data, listener)
      }
      const opening = place.open({ path }, {}, broken).then(
        () => 'open',
        () => 'refused',
      )
      expect(await opening).toBe(waits ? 'open' : 'refused')
      other.close()
    },
    20_000,
  )

  it('can be closed while it waits for that', async () => {
    const path = join(place.folder, 'busy.db')
    const other = new Database(path)
    other.exec('BEGIN EXCLUSIVE')
    const store = await place.open({ path })
    await store.close()
    expect(await store.commit(orderWrite(), never())).toEqual({ kind: 'unavailable' })
    other.close()
  }, 20_000)

  it('opens a new file from many connections at once', async () => {
    const stores = await Promise.all(Array.from({ length: 4 }, () => place.open()))
    const verdicts = await Promise.all(stores.map(store => store.commit(orderWrite(), never())))
    expect(verdicts).toEqual(Array(4).fill({ kind: 'created' }))
  })

  it('opens a new file from two processes at once', async () => {
    const children = [openElsewhere(place.path), openElsewhere(place.path)]
    await Promise.all(children.map(child => once(child.stdout, 'data')))
    const outcomes = children.map(child => text(child.stdout))
    for (const child of children) child.stdin.write('go')
    expect(await Promise.all(outcomes)).toEqual([' opened', ' opened'])
    expect(place.rows()).toEqual({ keys: 0, orders: 0, events: 0 })
  })

  it('opens beside a process that holds the lock', async () => {
    await (await place.open()).close()
    const other = place.connect()
    other.exec('BEGIN IMMEDIATE')
    const store = await place.open()
    expect(store.degraded()).toBeUndefined()
    other.close()
  })
})

/** A process that says `up`, waits for a word, and says how opening `path` went. */
function openElsewhere(path: string, who: { uid?: number; gid?: number } = {}) {
  const database = new URL('../../src/store/sqlite/database.ts', import.meta.url)
  const script = `
    const { openForWriting, openReason } = await import('${database}')
    process.stdout.write('up')
    process.stdin.once('data', () => {
      process.stdin.destroy()
      try {
        openForWriting({ path: process.argv[1], synchronous: 'FULL', busyTimeoutMs: 100 }).close()
        process.stdout.write(' opened')
      } catch (error) {
        process.stdout.write(' ' + openReason(error))
      }
    })`
  return spawn(process.execPath, ['--input-type=module', '-e', script, path], {
    stdio: ['pipe', 'pipe', 'inherit'],
    ...who,
  })
}
