import { BlockList, isIP } from 'node:net'

/**
 * IPv4 ranges that are not addresses of the public Internet: the IANA IPv4 Special-Purpose Address Registry without its
 * globally reachable entries outside of 192.0.0.0/24, multicast, and addresses at which a cloud itself answers.
 */
const SPECIAL_IPV4 = [
  ['0.0.0.0', 8], // this network, unspecified
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // carrier-grade NAT
  ['127.0.0.0', 8], // loopback
  ['168.63.129.16', 32], // the platform of Azure, for each of its machines
  ['169.254.0.0', 16], // link-local, and the metadata service of clouds
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocol assignments, with anycast to the next gateway
  ['192.0.2.0', 24], // documentation
  ['192.88.99.0', 24], // 6to4 relays, deprecated
  ['192.168.0.0', 16], // private
  ['198.18.0.0', 15], // benchmarking
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, broadcast
] as const

/** Ranges of {@link GLOBAL_IPV6} that are not public, or that tunnel to an IPv4 address by a deprecated protocol. */
const SPECIAL_IPV6 = [
  ['2001::', 23], // protocol assignments, with Teredo, benchmarking, ORCHID and drones
  ['2001:db8::', 32], // documentation
  ['2002::', 16], // 6to4
  ['3ffe::', 16], // 6bone, given back
  ['3fff::', 20], // documentation
] as const

/** Global unicast. Everything else is loopback, unique local, link-local, multicast or reserved. */
const GLOBAL_IPV6 = ['2000::', 3] as const
/** The prefixes of IPv6 addresses that stand for an IPv4 address: mapped (RFC 4291) and NAT64 (RFC 6052). */
const EMBEDDING_PREFIXES = ['::ffff:', '64:ff9b::']

const special = new BlockList()
const global = new BlockList()
for (const [address, bits] of SPECIAL_IPV4) {
  special.addSubnet(address, bits)
  for (const prefix of EMBEDDING_PREFIXES) special.addSubnet(prefix + address, 96 + bits, 'ipv6')
}
for (const [address, bits] of SPECIAL_IPV6) special.addSubnet(address, bits, 'ipv6')
global.addSubnet(...GLOBAL_IPV6, 'ipv6')
for (const prefix of EMBEDDING_PREFIXES) global.addSubnet(`${prefix}0.0.0.0`, 96, 'ipv6')

/**
 * Whether an IP address is one of the public Internet, and so not of this machine or its network. False for a text that is
 * not an IP address, and for an IPv6 address with a zone.
 */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return !special.check(address)
  if (family !== 6 || address.includes('%')) return false
  return global.check(address, 'ipv6') && !special.check(address, 'ipv6')
}
