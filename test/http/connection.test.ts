import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { Connection, type Turn } from '../../src/http/connection.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const RESPONSE_TIMEOUT_MS = 5_000
const READ_AWAY_BYTES = 65_536

class FakeSocket extends EventEmitter {
  writableLength = 0
  bytesRead = 0
  readableEnded = false
  destroyed = false
  paused = false
  ended = false
  destroySoon = () => undefined
  pause(): void {
    this.paused = true
  }
  resume(): void {
    this.paused = false
    this.emit('resume')
  }
  end(): void {
    this.ended = true
  }
  destroy(): void {
    this.destroyed = true
  }
}

class FakeResponse extends EventEmitter {
  readonly statuses: number[] = []
  readonly connection: (string | undefined)[] = []
  shouldKeepAlive = true
  writeHead(status: number, headers: readonly string[]): void {
    this.statuses.push(status)
    const at = headers.indexOf('Connection')
    this.connection.push(at < 0 ? undefined : headers[at + 1])
  }
  end(): void {}
}

function connecting({ draining = false } = {}) {
  const clock = new VirtualClock()
  const socket = new FakeSocket()
  const begun: Turn[] = []
  const abandoned: Turn[] = []
  const connection = new Connection(socket as unknown as Socket, {
    clock,
    responseTimeoutMs: RESPONSE_TIMEOUT_MS,
    isDraining: () => draining,
    begin: turn => begun.push(turn),
    abandoned: turn => abandoned.push(turn),
    ended: () => undefined,
  })
  const turn = ({ complete = true, expectsContinue = false, headers = {} } = {}) => {
    const req = Object.assign(new EventEmitter(), { complete, headers })
    const res = new FakeResponse()
    return {
      req,
      res,
      turn: {
        req: req as unknown as IncomingMessage,
        res: res as unknown as ServerResponse,
        expectsContinue,
        broken: undefined,
      },
    }
  }
  const answer = () => connection.answer(200, [], 'body', 'trace')
  return { clock, socket, begun, abandoned, connection, turn, answer }
}

describe('Connection', () => {
  test('begins a pipelined request only after the kernel has taken the answer before it', () => {
    const { socket, begun, connection, turn, answer } = connecting()
    const [first, second, third] = [turn(), turn(), turn()]
    for (const { turn } of [first, second, third]) connection.arrive(turn)
    expect(begun).toEqual([first.turn])
    expect(socket.paused).toBe(true)
    answer()
    expect(begun).toHaveLength(1)
    first.res.emit('close')
    expect(begun).toEqual([first.turn, second.turn])
    answer()
    second.res.emit('close')
    answer()
    third.res.emit('close')
    expect(begun).toHaveLength(3)
    expect(socket.paused).toBe(false)
    expect(connection.inProgress).toBe(0)
  })

  test('stays paused while a request waits, whoever resumes the socket', () => {
    const { socket, connection, turn } = connecting()
    connection.arrive(turn().turn)
    connection.arrive(turn().turn)
    socket.resume()
    expect(socket.paused).toBe(true)
  })

  test('reports the requests that wait when the client hangs up, and begins none of them', () => {
    const { socket, begun, abandoned, connection, turn } = connecting()
    const [first, second, third] = [turn(), turn(), turn()]
    for (const { turn } of [first, second, third]) connection.arrive(turn)
    socket.destroyed = true
    first.res.emit('close')
    socket.emit('close')
    expect(begun).toEqual([first.turn])
    expect(abandoned).toEqual([second.turn, third.turn])
    expect(connection.inProgress).toBe(0)
  })

  test('cuts an answer that does not leave after responseTimeoutMs', () => {
    const { clock, socket, connection, turn, answer } = connecting()
    connection.arrive(turn().turn)
    socket.writableLength = 1
    answer()
    clock.advance(RESPONSE_TIMEOUT_MS - 1)
    expect(socket.destroyed).toBe(false)
    clock.advance(1)
    expect(socket.destroyed).toBe(true)
  })

  test('leaves no timer behind an answer that left', () => {
    for (const writableLength of [0, 1]) {
      const { clock, socket, connection, turn, answer } = connecting()
      const { turn: only, res } = turn()
      connection.arrive(only)
      socket.writableLength = writableLength
      answer()
      res.emit('close')
      expect(clock.pendingTimers).toBe(0)
    }
  })

  test('says close while draining, with the last answer only, and ignores what comes after it', () => {
    const { begun, connection, turn, answer } = connecting({ draining: true })
    const [first, second] = [turn(), turn()]
    connection.arrive(first.turn)
    connection.arrive(second.turn)
    answer()
    first.res.emit('close')
    answer()
    second.res.emit('close')
    expect([first, second].map(({ res }) => res.connection[0])).toEqual([undefined, 'close'])
    connection.arrive(turn().turn)
    expect(begun).toHaveLength(2)
  })

  test.each([
    ['a body longer than is read away', { complete: false, headers: { 'content-length': '65537' } }, 'close'],
    ['a body that is read away', { complete: false, headers: { 'content-length': '65536' } }, undefined],
    ['a client that was not told to go on', { complete: false, expectsContinue: true }, 'close'],
    ['a whole request', { complete: true, expectsContinue: true }, undefined],
  ])('answers %s: Connection %j', (_, request, expected) => {
    const { connection, turn, answer } = connecting()
    const { turn: only, res } = turn(request)
    connection.arrive(only)
    answer()
    expect(res.connection).toEqual([expected])
  })

  test('reads the rest of a refused body away and keeps the connection when it ends in time', () => {
    const { clock, socket, connection, turn, answer } = connecting()
    const { turn: only, req, res } = turn({ complete: false })
    connection.arrive(only)
    answer()
    res.emit('close')
    socket.bytesRead += READ_AWAY_BYTES
    req.emit('data')
    expect(socket).toMatchObject({ paused: false, ended: false })
    req.emit('end')
    expect(clock.pendingTimers).toBe(0)
    // The next body has the whole limit again.
    const next = turn({ complete: false })
    connection.arrive(next.turn)
    answer()
    socket.bytesRead += READ_AWAY_BYTES
    next.req.emit('data')
    expect(socket).toMatchObject({ paused: false, ended: false })
  })

  test('stops reading a refused body at 64 KiB, sends FIN, and destroys the socket a second later', () => {
    const { clock, socket, connection, turn, answer } = connecting()
    const { turn: only, req } = turn({ complete: false })
    connection.arrive(only)
    socket.bytesRead = 500
    answer()
    socket.bytesRead += READ_AWAY_BYTES + 1
    req.emit('data')
    expect(socket).toMatchObject({ paused: true, ended: true, destroyed: false })
    socket.resume()
    expect(socket.paused).toBe(true)
    clock.advance(999)
    expect(socket.destroyed).toBe(false)
    clock.advance(1)
    expect(socket.destroyed).toBe(true)
  })

  test('sends FIN when a refused body has not ended within a second', () => {
    const { clock, socket, connection, turn, answer } = connecting()
    connection.arrive(turn({ complete: false }).turn)
    answer()
    clock.advance(999)
    expect(socket.ended).toBe(false)
    clock.advance(1)
    expect(socket).toMatchObject({ ended: true, destroyed: false })
  })

  test('reads on behind its last answer, 64 KiB at most, before it destroys the socket', () => {
    const { clock, socket, connection, turn, answer } = connecting({ draining: true })
    const { turn: only, res } = turn()
    connection.arrive(only)
    answer()
    // As Node.js does once the answer that says close has left.
    socket.destroySoon()
    res.emit('close')
    expect(socket).toMatchObject({ ended: true, paused: false, destroyed: false })
    socket.bytesRead += READ_AWAY_BYTES + 1
    connection.arrive(turn().turn)
    expect(socket.paused).toBe(true)
    clock.advance(1_000)
    expect(socket.destroyed).toBe(true)
  })

  test('leaves no timer behind a socket that has closed', () => {
    const { clock, socket, connection, turn, answer } = connecting()
    connection.arrive(turn({ complete: false }).turn)
    socket.writableLength = 1
    answer()
    socket.destroySoon()
    socket.emit('close')
    expect(clock.pendingTimers).toBe(0)
  })

  test('keeps an action for after the answers, and takes no request in meanwhile', () => {
    const { socket, begun, connection, turn, answer } = connecting()
    const { turn: only, res } = turn()
    connection.arrive(only)
    let done = 0
    connection.afterAnswers(() => done++)
    expect(socket.paused).toBe(true)
    expect(done).toBe(0)
    answer()
    res.emit('close')
    expect(done).toBe(1)
    expect(begun).toHaveLength(1)
  })
})
