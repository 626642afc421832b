import { describe, expect, test, vi } from 'vitest'
import { isPrivateAddress } from '../../src/outbox/private-address.ts'
import { consumer, webhookTo } from './consumer.ts'

const FORBIDDEN = { kind: 'failed', reason: 'the target lies in a private network' }

/** What names resolve to; the rest as the system has it. */
const names = vi.hoisted(() => new Map<string, { address: string; family: number }[]>())
vi.mock('node:dns', async original => {
  const dns = await original<typeof import('node:dns')>()
  const lookup = (name: string, options: object, callback: (...found: unknown[]) => void) => {
    const addresses = names.get(name)
    if (addresses) queueMicrotask(() => callback(null, addresses))
    else dns.lookup(name, options, callback as never)
  }
  return { ...dns, lookup, default: { ...dns, lookup } }
})

describe('a target in a private network', () => {
  test.each([
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0177.0.0.1',
    '127.0.0.1.',
    '１２７.0.0.1',
    '0.0.0.0',
    'localhost',
    'LOCALHOST',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '10.0.0.1',
    '169.254.169.254',
    '[fd00::1]',
    '[fe80::1]',
  ])('by way of %s is not connected to', async host => {
    const { port, posts, sockets } = await consumer()
    const { deliver, clock } = webhookTo(`http://${host}:${port}/`, { allowPrivateNetworks: false })
    expect(await deliver()).toEqual(FORBIDDEN)
    expect(posts).toEqual([])
    expect(sockets.opened).toBe(0)
    expect(clock.pendingTimers).toBe(0)
  })

  test('is judged at each connection, not by what its name was before', async () => {
    const { port, sockets } = await consumer()
    const { deliver } = webhookTo(`http://consumer.example:${port}/`, { allowPrivateNetworks: false })
    for (const address of ['127.0.0.1', '::ffff:127.0.0.1', 'fe80::1%lo']) {
      names.set('consumer.example', [{ address, family: address.includes(':') ? 6 : 4 }])
      expect(await deliver()).toEqual(FORBIDDEN)
    }
    expect(sockets.opened).toBe(0)
  })

  test('is connected to where that is allowed', async () => {
    const { port, posts } = await consumer()
    for (const host of ['127.0.0.1', '2130706433', 'localhost']) {
      expect(await webhookTo(`http://${host}:${port}/`).deliver()).toEqual({ kind: 'delivered' })
    }
    expect(posts).toHaveLength(3)
  })
})

test.each([
  '8.8.8.8',
  '1.1.1.1',
  '100.63.255.255',
  '100.128.0.0',
  '172.15.0.1',
  '172.32.0.1',
  '192.0.1.1',
  '198.17.0.1',
  '223.255.255.255',
  '::ffff:8.8.8.8',
  '2606:4700::1111',
  '2a00:1450:4001::200e',
])('%s is public', address => {
  expect(isPrivateAddress(address)).toBe(false)
})

test.each([
  '0.1.2.3',
  '10.255.255.255',
  '100.64.0.1',
  '100.127.255.255',
  '169.254.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.1',
  '192.168.255.255',
  '198.19.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '::1',
  '::ffff:10.0.0.1',
  '::10.0.0.1',
  '2001::1',
  '2001:db8::1',
  '2002:7f00:1::',
  '3fff::1',
  'fc00::1',
  'fdff::1',
  'fe80::1',
  'fe80::1%eth0',
  'fec0::1',
  'ff02::1',
])('%s is not public', address => {
  expect(isPrivateAddress(address)).toBe(true)
})
