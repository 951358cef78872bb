import type { ConnectionError } from '../transport/errors.ts'

/** Boundaries of the buckets of durations, in s, as the semantic conventions advise them. */
export const DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/** Name of an error whose class has no usable name. */
const OTHER = '_OTHER'

/** The attribute `error.type`: of few values, without ids. */
export function errorType(error: unknown): { readonly 'error.type': string } {
  return { 'error.type': errorTypeName(error) }
}

function errorTypeName(error: unknown): string {
  if (!(error instanceof Error)) return OTHER
  // As the semantic conventions have it for HTTP.
  if ('status' in error && typeof error.status === 'number') return String(error.status)
  // How a connection failed: `refused`, `silence`, for instance.
  if (isConnectionError(error) && isName(error.reason)) return error.reason
  const { name } = error.constructor
  return isName(name) ? name : OTHER
}

/** By the code, since the class may be of another copy of the package. */
function isConnectionError(error: Error): error is ConnectionError {
  return (
    'code' in error && error.code === 'connection' && 'reason' in error && typeof error.reason === 'string'
  )
}

function isName(text: string): boolean {
  return /^[A-Za-z][\w-]{0,63}$/.test(text)
}

/** The attribute `url.template` of a path; none for a path that is not of the interface. */
export function templateOf(path: string): { readonly 'url.template'?: string } {
  const template = urlTemplate(path)
  return template === undefined ? {} : { 'url.template': template }
}

/** Seconds since a moment of `performance.now()`. */
export function secondsSince(start: number): number {
  return (performance.now() - start) / 1_000
}

/** The paths of the interface, with ids as placeholders. */
const TEMPLATES = [
  '/v1/search',
  '/v1beta/search',
  '/v1/extract',
  '/v1/monitors',
  '/v1/monitors/{monitor_id}',
  '/v1/monitors/{monitor_id}/cancel',
  '/v1/monitors/{monitor_id}/events',
  '/v1/monitors/{monitor_id}/trigger',
  '/v1/monitors/{monitor_id}/update',
  '/v1/tasks/groups',
  '/v1/tasks/groups/{taskgroup_id}',
  '/v1/tasks/groups/{taskgroup_id}/events',
  '/v1/tasks/groups/{taskgroup_id}/runs',
  '/v1beta/tasks/groups/{taskgroup_id}/runs',
  '/v1/tasks/groups/{taskgroup_id}/runs/{run_id}',
  '/v1/tasks/runs',
  '/v1/tasks/runs/{run_id}',
  '/v1/tasks/runs/{run_id}/events',
  '/v1/tasks/runs/{run_id}/input',
  '/v1/tasks/runs/{run_id}/result',
  '/v1beta/findall/entity-search',
  '/v1beta/findall/ingest',
  '/v1beta/findall/runs',
  '/v1beta/findall/runs/{findall_id}',
  '/v1beta/findall/runs/{findall_id}/cancel',
  '/v1beta/findall/runs/{findall_id}/extend',
  '/v1beta/findall/runs/{findall_id}/enrich',
  '/v1beta/findall/runs/{findall_id}/schema',
  '/v1beta/findall/runs/{findall_id}/result',
  '/v1beta/findall/runs/{findall_id}/events',
  '/v1beta/chat/completions',
  '/v1/responses',
  '/v1/responses/{id}',
  '/v1/models',
  '/v1beta/models',
  '/v1beta/memory/retrieve',
  '/v1beta/memory/evict',
  '/v1beta/memory/clear',
].map((template) => ({ template, segments: template.split('/') }))

/** The template of a path, which may begin with the path of `baseUrl` and have a query; undefined for an unknown one. */
export function urlTemplate(path: string): string | undefined {
  const [pathname = ''] = path.split('?', 1)
  const start = pathname.search(/\/v1(?:beta)?\//)
  if (start === -1) return undefined
  const given = pathname.slice(start).split('/')
  return TEMPLATES.find(
    ({ segments }) =>
      segments.length === given.length &&
      segments.every((segment, n) => segment === given[n] || (segment.startsWith('{') && given[n] !== '')),
  )?.template
}
