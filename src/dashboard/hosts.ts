import { isIPv4 } from 'node:net'

/**
 * Whether a request is to this machine, or to one of the other hosts that are allowed. Without this check, a page from elsewhere whose
 * name leads to this machine could read the dashboard (DNS rebinding).
 */
export function isAllowedHost(request: Request, hosts: readonly string[]): boolean {
  const url = new URL(request.url)
  const header = request.headers.get('host')
  if (header !== null && hostOf(url, header) !== url.host) return false
  return isLoopback(url.hostname) || hosts.includes(url.host)
}

/** The header as URLs write it. */
function hostOf({ protocol }: URL, header: string): string | undefined {
  const text = `${protocol}//${header}/`
  return URL.canParse(text) ? new URL(text).host : undefined
}

function isLoopback(hostname: string): boolean {
  if (hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]') return true
  return isIPv4(hostname) && hostname.startsWith('127.')
}
