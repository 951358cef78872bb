import { urlTemplate } from './url-template.ts'

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
  if ('failure' in error && typeof error.failure === 'string' && isName(error.failure)) return error.failure
  const { name } = error.constructor
  return isName(name) ? name : OTHER
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
