import { EventEmitter, getEventListeners, once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLogger, eventLines, LogStream } from '../../src/telemetry/index.ts'
import { logOptions } from '../../src/telemetry/options.ts'

const never = new AbortController().signal

function writer(stream: LogStream, options: object = {}) {
  return eventLines(createLogger(logOptions.parse(options), stream), stream)
}

/** A destination that keeps what it is given until it is told how much of it has left. */
class HeldDestination extends EventEmitter {
  lines: string[] = []
  room = Number.POSITIVE_INFINITY

  write(line: string): void {
    if (this.lines.length >= this.room) this.emit('drop', line)
    else this.lines.push(line)
  }

  leave(lines: number): void {
    this.emit('write', Buffer.byteLength(this.lines.splice(0, lines).join('')))
  }
}

describe('event lines', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'lines-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  it('are written when they say so, whatever the level of the log, and many at once', async () => {
    const path = join(folder, 'log')
    const destination = pino.destination({ dest: path, sync: false })
    const write = writer(new LogStream(destination), { level: 'error' })
    for (let round = 0; round < 3; round++) {
      const written = await Promise.all(
        Array.from({ length: 100 }, (_, n) => write({ round, n, text: 'größer 😀' }, never)),
      )
      expect(written).toEqual(Array(100).fill(true))
      const read = readFileSync(path, 'utf8').trimEnd().split('\n')
      expect(read).toHaveLength(100 * (round + 1))
      expect(JSON.parse(read.at(-1) ?? '')).toMatchObject({ level: 'info', round, n: 99, msg: 'event' })
    }
    destination.destroy()
  })

  it('are written though there is always another line behind them', async () => {
    const destination = pino.destination({ dest: join(folder, 'log'), sync: false })
    await once(destination, 'ready')
    const stream = new LogStream(destination)
    const write = writer(stream)
    let isOver = false
    const chatter = () => {
      if (isOver) return
      stream.write('{"one":"more"}\n')
      setImmediate(chatter)
    }
    chatter()
    expect(await write({ n: 1 }, never)).toBe(true)
    expect(await write({ n: 2 }, never)).toBe(true)
    isOver = true
    destination.destroy()
  })

  it('settle one by one as they leave, and in part is not yet', async () => {
    const destination = new HeldDestination()
    const write = writer(new LogStream(destination))
    const settled: number[] = []
    for (const n of [1, 2, 3]) void write({ n }, never).then(() => settled.push(n))
    const turn = () => new Promise(resolve => setImmediate(resolve))
    destination.leave(1)
    await turn()
    expect(settled).toEqual([1])
    destination.emit('write', 5)
    await turn()
    expect(settled).toEqual([1])
    destination.leave(2)
    await turn()
    expect(settled).toEqual([1, 2, 3])
  })

  it('are not written where there is no room, nor once the signal has come', async () => {
    const destination = new HeldDestination()
    const write = writer(new LogStream(destination))
    const stop = new AbortController()
    const waiting = write({ n: 1 }, stop.signal)
    destination.room = 1
    expect(await write({ n: 2 }, never)).toBe(false)
    stop.abort()
    expect(await waiting).toBe(false)
    expect(await write({ n: 3 }, stop.signal)).toBe(false)
    expect(destination.lines).toHaveLength(1)
    expect(getEventListeners(stop.signal, 'abort')).toEqual([])
    // What was dropped is not counted: the next one still settles in its turn.
    destination.room = 10
    const next = write({ n: 4 }, never)
    destination.leave(2)
    expect(await next).toBe(true)
  })
})
