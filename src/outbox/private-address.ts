import { BlockList, isIPv6 } from 'node:net'

/** Networks that are not the public internet: the special-purpose registries of RFC 6890 and what came after it. */
const PRIVATE = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  PRIVATE.addSubnet(network, prefix, 'ipv4')
}
for (const [network, prefix] of [
  // The unspecified address, loopback, and IPv4 in its deprecated compatible form (RFC 4291).
  ['::', 96],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 23],
  ['2001:db8::', 32],
  ['3fff::', 20],
  ['5f00::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
  // IPv4 inside of IPv6, which a BlockList sees through only in its mapped form: NAT64 (RFC 6052), its translated form
  // (RFC 2765) and 6to4 (RFC 3056) lead to any IPv4 address, private ones too.
  ['64:ff9b::', 96],
  ['::ffff:0:0:0', 96],
  ['2002::', 16],
] as const) {
  PRIVATE.addSubnet(network, prefix, 'ipv6')
}

/** Whether an IP address lies in a network that is private, loopback, link-local or otherwise not public. */
export function isPrivateAddress(address: string): boolean {
  return PRIVATE.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}
