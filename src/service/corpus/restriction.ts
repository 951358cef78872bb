import type { StatementSync } from 'node:sqlite'
import type { CorpusQuery } from './corpus.ts'
import { allowedHosts } from './source-policy.ts'

/** Named parameters of {@link ALLOWED_DOCUMENTS}; null where nothing is restricted. */
export interface Restriction {
  /** The hosts that are allowed, as a JSON array. */
  readonly $hosts: string | null
  readonly $after: string | null
  readonly $about: string | null
}

/** The SQL for the ids of the documents that a restriction allows. `$about` fits a title, a folder's name or a file's name. */
export const ALLOWED_DOCUMENTS = `
  SELECT id FROM corpus_files
  WHERE visible = 1
    AND ($hosts IS NULL OR host IN (SELECT value FROM json_each($hosts)))
    AND ($after IS NULL OR publish_date >= $after)
    AND (
      $about IS NULL
      OR lower(title) = lower($about)
      OR instr(place, '/' || $about || '/') > 0
      OR instr(place, '/' || $about || '.') > 0
    )`

/** The SQL for the hosts of all documents, each once. It reads an index alone. */
export const ALL_HOSTS = 'SELECT DISTINCT host FROM corpus_files WHERE visible = 1'

/** What a query restricts, or undefined where it lets every document pass. `hosts` is {@link ALL_HOSTS}, prepared. */
export function restrictionOf(
  { sourcePolicy = {}, about }: CorpusQuery,
  hosts: StatementSync,
): Restriction | undefined {
  // Hosts are few where documents are many, so the domains are held against each host once.
  const isAllowed = allowedHosts(sourcePolicy)
  const restriction = {
    $hosts: isAllowed === undefined ? null : JSON.stringify(hostsOf(hosts).filter(isAllowed)),
    $after: sourcePolicy.after_date ?? null,
    $about: about?.trim().toLowerCase() || null,
  }
  return Object.values(restriction).some((value) => value !== null) ? restriction : undefined
}

function hostsOf(hosts: StatementSync): string[] {
  return hosts.all().map(({ host }) => String(host))
}
