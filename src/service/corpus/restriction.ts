import type { StatementSync } from 'node:sqlite'
import type { CorpusQuery } from './corpus.ts'
import { normalName } from './names.ts'
import { allowedHosts } from './source-policy.ts'

/** Named parameters of {@link ALLOWED_DOCUMENTS}; null means no restriction. */
export interface Restriction {
  /** The allowed hosts, as a JSON array. */
  readonly $hosts: string | null
  readonly $after: string | null
  readonly $about: string | null
}

/** SQL for the ids of the allowed documents. `$about` is a name, see `namesOf`. */
export const ALLOWED_DOCUMENTS = `
  SELECT id FROM corpus_files
  WHERE visible = 1
    AND ($hosts IS NULL OR host IN (SELECT value FROM json_each($hosts)))
    AND ($after IS NULL OR publish_date >= $after)
    AND ($about IS NULL OR id IN (SELECT document FROM corpus_names WHERE name = $about))`

/** SQL for the distinct hosts of all documents. Only reads an index. */
export const ALL_HOSTS = 'SELECT DISTINCT host FROM corpus_files WHERE visible = 1'

/** The restriction of a query; undefined if it allows all documents. `hosts` is {@link ALL_HOSTS}, prepared. */
export function restrictionOf(
  { sourcePolicy = {}, about }: CorpusQuery,
  hosts: StatementSync,
): Restriction | undefined {
  // There are far fewer hosts than documents, so domains are compared with hosts.
  const isAllowed = allowedHosts(sourcePolicy)
  const restriction = {
    $hosts: isAllowed === undefined ? null : JSON.stringify(hostsOf(hosts).filter(isAllowed)),
    $after: sourcePolicy.after_date ?? null,
    $about: about === undefined ? null : normalName(about) || null,
  }
  return Object.values(restriction).some((value) => value !== null) ? restriction : undefined
}

function hostsOf(hosts: StatementSync): string[] {
  return hosts.all().map(({ host }) => String(host))
}
