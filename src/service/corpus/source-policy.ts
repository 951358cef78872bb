import type { SourcePolicy } from '../../protocol/task.ts'
import type { DocumentSource } from './corpus.ts'

/** Whether a host is allowed. One lookup for each label of the host, for any number of domains. */
export type HostTest = (host: string) => boolean

/**
 * The test for hosts of a policy (§2.8); undefined if it allows all. A host matches a domain if it is equal to it or a
 * subdomain, so `.edu` and `edu` are equivalent.
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

/** Whether a policy allows a document, by its host and its date. Without a policy, all are allowed. */
export function allowsDocument(policy: SourcePolicy = {}, { url, publishDate }: DocumentSource): boolean {
  const { after_date: after } = policy
  if (after !== undefined && (publishDate ?? '') < after) return false
  return allowedHosts(policy)?.(new URL(url).hostname) ?? true
}

/** `a.b.c`, `b.c` and `c` for the host `a.b.c`. */
function suffixesOf(host: string): string[] {
  const labels = host.split('.')
  return labels.map((_, index) => labels.slice(index).join('.'))
}

function domainsOf(domains: readonly string[] = []): ReadonlySet<string> {
  return new Set(domains.map((domain) => domain.trim().toLowerCase().replace(/^\./, '')))
}
