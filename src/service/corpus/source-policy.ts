import type { CorpusQuery } from './corpus.ts'

/** Named parameters of {@link ALLOWED_DOCUMENTS}; null where nothing is restricted. */
export interface Restriction {
  readonly $include: string | null
  readonly $exclude: string | null
  readonly $after: string | null
  readonly $about: string | null
}

/**
 * The SQL for the ids of the documents that a restriction allows. A host fits a domain when it is that domain or one
 * below it, so `.edu` and `edu` mean the same. `$about` fits a title, a folder's name or a file's name.
 */
export const ALLOWED_DOCUMENTS = `
  SELECT id FROM corpus_files
  WHERE visible = 1
    AND ($include IS NULL OR ${hostIsIn('$include')})
    AND ($exclude IS NULL OR NOT ${hostIsIn('$exclude')})
    AND ($after IS NULL OR publish_date >= $after)
    AND (
      $about IS NULL
      OR lower(title) = lower($about)
      OR instr(place, '/' || $about || '/') > 0
      OR instr(place, '/' || $about || '.') > 0
    )`

function hostIsIn(domains: string): string {
  return `EXISTS (
    SELECT 1 FROM json_each(${domains}) AS domain
    WHERE substr('.' || host, -length(domain.value)) = domain.value)`
}

/** What a query restricts, or undefined where it lets every document pass. */
export function restrictionOf({ sourcePolicy, about }: CorpusQuery): Restriction | undefined {
  const { include_domains = [], exclude_domains = [], after_date = null } = sourcePolicy ?? {}
  const restriction = {
    $include: suffixes(include_domains),
    $exclude: suffixes(exclude_domains),
    $after: after_date,
    $about: about?.trim().toLowerCase() || null,
  }
  return Object.values(restriction).some((value) => value !== null) ? restriction : undefined
}

function suffixes(domains: readonly string[]): string | null {
  if (domains.length === 0) return null
  return JSON.stringify(domains.map((domain) => `.${domain.trim().toLowerCase().replace(/^\./, '')}`))
}
