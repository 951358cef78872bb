import type { SourcePolicy } from '../../protocol/task.ts'

/** Decides about hosts. Its work for a host is a look-up for each of the host's labels, however many domains there are. */
export type HostTest = (host: string) => boolean

/**
 * The hosts that the domains of a policy allow (§2.8), or undefined where it allows them all. A host fits a domain when
 * it is that domain or one below it, so `.edu` and `edu` mean the same.
 */
export function allowedHosts({ include_domains, exclude_domains }: SourcePolicy): HostTest | undefined {
  const included = domainsOf(include_domains)
  const excluded = domainsOf(exclude_domains)
  if (included.size === 0 && excluded.size === 0) return undefined
  const isIn = (domains: ReadonlySet<string>) => (suffix: string) => domains.has(suffix)
  return (host) => {
    const suffixes = suffixesOf(host)
    return (included.size === 0 || suffixes.some(isIn(included))) && !suffixes.some(isIn(excluded))
  }
}

/** `a.b.c`, `b.c` and `c` for the host `a.b.c`. */
function suffixesOf(host: string): string[] {
  const labels = host.split('.')
  return labels.map((_, index) => labels.slice(index).join('.'))
}

function domainsOf(domains: readonly string[] = []): ReadonlySet<string> {
  return new Set(domains.map((domain) => domain.trim().toLowerCase().replace(/^\./, '')))
}
