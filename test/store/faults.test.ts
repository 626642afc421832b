import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it, type TestContext } from 'vitest'
import type { OrderWrite, Store } from '../../src/store/index.ts'
import type { ThreadAnswer } from '../../src/store/sqlite/protocol.ts'
import type { StartThread, ThreadPort } from '../../src/store/sqlite/thread.ts'
import { never, orderWrite, someId } from '../support/order-write.ts'
import { SqlitePlace } from '../support/sqlite-place.ts'

/** What the degraded store says must be fit for strangers. */
const REVEALING = /\/|\\|sqlite|punctual\.db|insert|begin|errno|code/i

describe('a store whose lock another process holds', () => {
  const BUSY_MS = 100
  let place: SqlitePlace
  let other: Database.Database

  beforeEach(async () => {
    place = new SqlitePlace()
  })
  afterEach(() => place.dispose())

  async function lockedStore(busyTimeoutMs: number): Promise<Store> {
    const store = await place.open({ busyTimeoutMs })
    other = place.connect()
    other.exec('BEGIN IMMEDIATE')
    return store
  }

  it('answers unavailable inside its time, says so, and recovers by itself', async () => {
    const store = await lockedStore(BUSY_MS)
    const degraded = place.nextHealth()
    const beganMs = performance.now()
    const verdicts = await Promise.all(Array.from({ length: 5 }, () => store.commit(orderWrite(), never())))
    const tookMs = performance.now() - beganMs
    expect(verdicts).toEqual(Array(5).fill({ kind: 'unavailable' }))
    expect(tookMs).toBeGreaterThan(BUSY_MS * 0.8)
    expect(tookMs).toBeLessThan(BUSY_MS * 2)
    expect(await degraded).toBe('another process holds the store locked')
    expect(store.degraded()).toBe('another process holds the store locked')
    expect(store.degraded()).not.toMatch(REVEALING)
    // Reading goes on.
    expect(await store.findOrder('tenant-1', someId(), never())).toEqual({ kind: 'absent' })

    const recovered = place.nextHealth()
    other.close()
    expect(await recovered).toBeUndefined()
    expect(store.degraded()).toBeUndefined()
    expect(await store.commit(orderWrite(), never())).toEqual({ kind: 'created' })
    expect(place.rows()).toEqual({ keys: 1, orders: 1, events: 1 })
  })

  it('gives a write back at the moment of its abort, and never stores it', async () => {
    const store = await lockedStore(5_000)
    const [sent, queued] = [orderWrite(), orderWrite()]
    const controller = new AbortController()
    const verdicts = [store.commit(sent, controller.signal)]
    // The first is with the writer, which waits for the lock; the second is queued behind it.
    await store.findOrder('tenant-1', someId(), never())
    verdicts.push(store.commit(queued, controller.signal))
    await store.findOrder('tenant-1', someId(), never())
    const abortedMs = performance.now()
    controller.abort()
    expect(await Promise.all(verdicts)).toEqual([{ kind: 'withdrawn' }, { kind: 'withdrawn' }])
    expect(performance.now() - abortedMs).toBeLessThan(20)

    other.close()
    expect(await store.commit(orderWrite({ key: sent.key }), never())).toEqual({ kind: 'created' })
    for (const write of [sent, queued]) {
      expect(await store.findOrder(write.tenant, write.order.id, never())).toEqual({ kind: 'absent' })
    }
    expect(store.degraded()).toBeUndefined()
  })
})

/** Real threads that a test can kill. */
function killableThreads() {
  const workers = new Map<string, Worker>()
  const ports = new Map<string, ThreadPort>()
  const start: StartThread = (file, data, listener) => {
    const name = file.pathname.split('/').at(-1) ?? ''
    const worker = new Worker(file, { workerData: data })
    let reason = 'killed'
    worker.on('message', (answer: ThreadAnswer) => listener.onAnswer(answer))
    worker.on('error', error => {
      reason = String(error)
    })
    worker.on('exit', () => listener.onExit(reason))
    const port: ThreadPort = { post: request => worker.postMessage(request) }
    workers.set(name, worker)
    ports.set(name, port)
    return port
  }
  return { workers, ports, start }
}

describe('a store whose threads die', () => {
  let place: SqlitePlace
  beforeEach(() => {
    place = new SqlitePlace()
  })
  afterEach(() => place.dispose())

  it('the writer, in the middle of a group that it has not claimed: unavailable, and a new writer', async () => {
    const threads = killableThreads()
    const store = await place.open({ busyTimeoutMs: 200 }, {}, threads.start)
    const other = place.connect()
    other.exec('BEGIN IMMEDIATE')
    const writes = [orderWrite(), orderWrite()]
    const verdicts = writes.map(write => store.commit(write, never()))
    await store.findOrder('tenant-1', someId(), never())
    const degraded = place.nextHealth()
    await threads.workers.get('writer.ts')?.terminate()
    expect(await Promise.all(verdicts)).toEqual(Array(2).fill({ kind: 'unavailable' }))
    expect(await degraded).toBe('the store is being started again')
    expect(store.degraded()).not.toMatch(REVEALING)
    other.close()
    expect(await place.nextHealth()).toBeUndefined()
    expect(await store.commit(orderWrite({ key: writes[0]?.key ?? '' }), never())).toEqual({
      kind: 'created',
    })
    expect(place.rows()).toEqual({ keys: 1, orders: 1, events: 1 })
  })

  it('the writer, by a fault of ours: the operator hears why', async () => {
    const threads = killableThreads()
    const store = await place.open({}, {}, threads.start)
    const troubles: string[] = []
    place.channels.trouble.subscribe(({ reason }) => troubles.push(reason))
    const degraded = place.nextHealth()
    threads.ports.get('writer.ts')?.post(null as never)
    expect(await degraded).toBe('the store is being started again')
    const recovered = place.nextHealth()
    expect(await store.commit(orderWrite(), never())).toEqual({ kind: 'unavailable' })
    expect(troubles).toEqual([expect.stringContaining('TypeError')])
    expect(await recovered).toBeUndefined()
    expect(await store.commit(orderWrite(), never())).toEqual({ kind: 'created' })
  })

  it('the reader: look-ups are unavailable until there is a new one', async () => {
    const threads = killableThreads()
    const store = await place.open({}, {}, threads.start)
    const write = orderWrite()
    await store.commit(write, never())
    const degraded = place.nextHealth()
    const lookup = store.findReply(write, never())
    await threads.workers.get('reader.ts')?.terminate()
    expect(['found', 'unavailable']).toContain((await lookup).kind)
    expect(await degraded).toBe('the store is being started again')
    const recovered = place.nextHealth()
    expect(await store.findReply(write, never())).toEqual({ kind: 'unavailable' })
    expect(await store.commit(orderWrite(), never())).toEqual({ kind: 'created' })
    expect(await recovered).toBeUndefined()
    expect(await store.findReply(write, never())).toMatchObject({ kind: 'found' })
  })
})

/** Commits until the store can do no more; what it acknowledged comes back. */
async function commitUntilUnavailable(store: Store): Promise<OrderWrite[]> {
  const acknowledged: OrderWrite[] = []
  for (;;) {
    const writes = Array.from({ length: 20 }, () =>
      orderWrite({ json: JSON.stringify({ text: 'x'.repeat(1_000) }) }),
    )
    const verdicts = await Promise.all(writes.map(write => store.commit(write, never())))
    acknowledged.push(...writes.filter((_, n) => verdicts[n]?.kind === 'created'))
    if (verdicts.some(({ kind }) => kind === 'unavailable')) return acknowledged
  }
}

async function missing(store: Store, writes: readonly OrderWrite[]): Promise<number> {
  const lookups = writes.map(write => store.findOrder(write.tenant, write.order.id, never()))
  return (await Promise.all(lookups)).filter(({ kind }) => kind !== 'found').length
}

describe('a store whose disk fails', () => {
  it('full: acknowledges nothing more, loses nothing, recovers by itself', async context => {
    const mount = mountSmallDisk()
    if (!mount) return skipLoudly(context, 'no right to mount a small file system here')
    const place = new SqlitePlace(mount.folder)
    try {
      const store = await place.open()
      const filler = join(mount.folder, 'filler')
      writeFileSync(filler, Buffer.alloc(2_000_000))
      const acknowledged = await commitUntilUnavailable(store)
      expect(acknowledged.length).toBeGreaterThan(20)
      expect(store.degraded()).toBe('the disk of the store is full')
      expect(store.degraded()).not.toMatch(REVEALING)
      expect(await missing(store, acknowledged)).toBe(0)
      const recovered = place.nextHealth()
      rmSync(filler)
      expect(await recovered).toBeUndefined()
      const after = orderWrite()
      expect(await store.commit(after, never())).toEqual({ kind: 'created' })
      await store.close()
      const reopened = await place.open()
      expect(await missing(reopened, [...acknowledged, after])).toBe(0)
      const { keys, orders, events } = place.rows()
      expect([keys, orders, events]).toEqual(Array(3).fill(acknowledged.length + 1))
    } finally {
      await place.dispose().catch(() => {})
      mount.unmount()
    }
  })

  it('full from the start: opens degraded, and works once there is room', async context => {
    const mount = mountSmallDisk()
    if (!mount) return skipLoudly(context, 'no right to mount a small file system here')
    const place = new SqlitePlace(mount.folder)
    try {
      // Closed cleanly, a store needs some room again before it can be opened.
      await (await place.open()).close()
      const filler = join(mount.folder, 'filler')
      for (let bytes = 4_000_000; bytes >= 512; bytes /= 2) {
        try {
          for (;;) appendFileSync(filler, Buffer.alloc(bytes))
        } catch {}
      }
      const store = await place.open()
      expect(store.degraded()).toBe('the disk of the store is full')
      expect(await store.commit(orderWrite(), never())).toEqual({ kind: 'unavailable' })
      const recovered = place.nextHealth()
      rmSync(filler)
      expect(await recovered).toBeUndefined()
      expect(await store.commit(orderWrite(), never())).toEqual({ kind: 'created' })
    } finally {
      await place.dispose().catch(() => {})
      mount.unmount()
    }
  }, 20_000)

  it('an error of input or output: the same', async context => {
    if (spawnSync('prlimit', ['--version']).status !== 0) return skipLoudly(context, 'prlimit is not here')
    const place = new SqlitePlace()
    const limit = (bytes: string) =>
      execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:unlimited`])
    try {
      const store = await place.open()
      await store.commit(orderWrite(), never())
      limit(String(statSync(`${place.path}-wal`).size + 200_000))
      const acknowledged = await commitUntilUnavailable(store)
      expect(store.degraded()).toBe('the disk of the store fails')
      expect(await missing(store, acknowledged)).toBe(0)
      const recovered = place.nextHealth()
      limit('unlimited')
      expect(await recovered).toBeUndefined()
      expect(await store.commit(orderWrite(), never())).toEqual({ kind: 'created' })
      expect(await missing(store, acknowledged)).toBe(0)
    } finally {
      limit('unlimited')
      await place.dispose()
    }
  })
})

function skipLoudly(context: TestContext, reason: string): void {
  process.stderr.write(`SKIPPED: ${context.task.name}: ${reason}\n`)
  context.skip(reason)
}

/** A file system of 3 MB, or undefined where that is not allowed. */
function mountSmallDisk(): { folder: string; unmount(): void } | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'punctual-disk-'))
  const inner = join(folder, 'disk')
  mkdirSync(inner)
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', inner]).status !== 0) {
    rmSync(folder, { recursive: true })
    return undefined
  }
  return {
    folder: inner,
    unmount: () => {
      spawnSync('umount', ['-l', inner])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
