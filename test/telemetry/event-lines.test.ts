import { getEventListeners, once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLogger, EventLines } from '../../src/telemetry/index.ts'
import { logOptions } from '../../src/telemetry/options.ts'

const never = new AbortController().signal

describe('event lines', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'lines-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  it('are written when they say so, whatever the level of the log, and many at once', async () => {
    const path = join(folder, 'log')
    const destination = pino.destination({ dest: path, sync: false })
    const lines = new EventLines(createLogger(logOptions.parse({ level: 'error' }), destination), destination)
    for (let round = 0; round < 3; round++) {
      const written = await Promise.all(
        Array.from({ length: 100 }, (_, n) => lines.write({ round, n }, never)),
      )
      expect(written).toEqual(Array(100).fill(true))
      const read = readFileSync(path, 'utf8').trimEnd().split('\n')
      expect(read).toHaveLength(100 * (round + 1))
      expect(JSON.parse(read.at(-1) ?? '')).toMatchObject({ level: 'info', round, n: 99, msg: 'event' })
    }
    destination.destroy()
  })

  it('are not written where there is no room, and wait for a reader that has stalled', async () => {
    // It keeps what is less than minLength, and takes no more than maxLength.
    const path = join(folder, 'log')
    const destination = pino.destination({ dest: path, sync: false, maxLength: 1_000, minLength: 900 })
    await once(destination, 'ready')
    const lines = new EventLines(createLogger(logOptions.parse({}), destination), destination)
    const stop = new AbortController()
    const waiting = lines.write({ text: 'x'.repeat(500) }, stop.signal)
    expect(await lines.write({ text: 'x'.repeat(500) }, never)).toBe(false)
    stop.abort()
    expect(await waiting).toBe(false)
    expect(await lines.write({}, stop.signal)).toBe(false)
    expect(getEventListeners(stop.signal, 'abort')).toEqual([])
    destination.destroy()
  })
})
