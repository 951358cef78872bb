import type { LookupAddress } from 'node:dns'
import { lookup as lookUp } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { callbackify } from 'node:util'
import { Agent, buildConnector } from 'undici'
import type { ResolveHost } from './resolve-host.ts'
import { WebError } from './web-error.ts'

/** Settings of {@link createGuardedAgent}. */
export interface GuardedAgentOptions {
  /** Whether a connection to this IP address is allowed. Called before each connection. */
  readonly isAllowed: (address: string) => boolean
  /** How long connecting may take, in ms of real time. */
  readonly timeout: number
  /** Default: the resolver of the operating system. */
  readonly resolve?: ResolveHost | undefined
}

const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]

/** How long one address of a host may take before the next is tried, in ms. Node's 250 ms are too short for distant hosts. */
const ATTEMPT_TIMEOUT = 2_000

/**
 * Creates an undici agent that connects only to allowed addresses. A host with any other address is refused with a
 * {@link WebError} of the kind `blocked_address`. The checked addresses are those that it connects to, so a second answer of
 * the DNS cannot differ.
 */
export function createGuardedAgent({
  isAllowed,
  timeout,
  resolve = resolveHost,
}: GuardedAgentOptions): Agent {
  async function allowedAddresses(hostname: string): Promise<LookupAddress[]> {
    const addresses = await resolve(hostname)
    if (addresses.length === 0) throw new WebError('fetch_error', `${hostname} has no address`)
    if (!addresses.every(({ address }) => isAllowed(address))) throw blocked(hostname)
    return [...addresses]
  }

  const lookUpAllowed = callbackify(allowedAddresses)
  const lookup: LookupFunction = (hostname, { all }, callback) => {
    lookUpAllowed(hostname, (error, addresses) => {
      // Without an error, there are addresses.
      const [first] = addresses ?? []
      if (error !== null || first === undefined) callback(error, [])
      // Node requests all addresses in order to try one after another.
      else if (all === true) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
  }

  const connector = buildConnector({
    timeout,
    allowH2: false,
    lookup,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ATTEMPT_TIMEOUT,
  })
  return new Agent({
    connect(options, callback) {
      const { hostname } = options
      // Node does not call `lookup` for an IP address.
      if (isIP(hostname) !== 0 && !isAllowed(hostname)) {
        queueMicrotask(() => callback(blocked(hostname), null))
        return
      }
      connector(options, callback)
    },
  })
}

/** Resolves names below `localhost` itself (RFC 6761): a resolver of the network may answer anything. */
async function resolveHost(hostname: string): Promise<readonly LookupAddress[]> {
  return /(^|\.)localhost\.?$/i.test(hostname) ? LOOPBACK : await lookUp(hostname, { all: true })
}

function blocked(hostname: string): WebError {
  return new WebError('blocked_address', `${hostname} is not an address of the public Internet`)
}
