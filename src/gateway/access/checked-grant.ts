import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkId, checkInteger, checkObject, checkOptions, nearestName } from '../../protocol/check.ts'
import { isId } from '../../protocol/id.ts'
import type { Grant, GrantedRequests } from '../grant.ts'

/** A {@link Grant} with its defaults. */
export interface CheckedGrant {
  readonly sub: string
  readonly views: readonly string[]
  readonly sources: readonly string[]
  readonly types: readonly string[]
  readonly omit: readonly string[]
  readonly requests: GrantedRequests
  readonly timeToLive: number
}

/** A grant of unknown origin. */
type GivenGrant = Readonly<Partial<Record<keyof Grant, unknown>>>

/** Default of {@link Grant.timeToLive}, in ms. */
const TIME_TO_LIVE = 10 * 60_000

/** The longest life of a grant, in ms. Revocations are kept as long. */
export const MAX_TIME_TO_LIVE = 24 * 3_600_000

/** Maximum number of characters of a subject, and of a name, source, type or field in a grant. */
const MAX_TEXT = 256

/** Maximum number of fields that a grant omits, and of names in one. They bound the time for each value. */
const MAX_OMITTED = 64
const MAX_OMITTED_DEPTH = 16

/** Maximum of a limit per minute. */
const MAX_RATE = 1_000_000

const GRANT = Object.keys({
  sub: true,
  views: true,
  sources: true,
  types: true,
  omit: true,
  requests: true,
  timeToLive: true,
} satisfies Record<keyof Grant, true>)

/**
 * Checks a grant.
 *
 * @param views The existing views. Default: any.
 * @throws ArgumentError
 */
export function checkGrant(grant: GivenGrant, views?: readonly string[]): CheckedGrant {
  checkOptions('grant', grant ?? null, GRANT)
  const { sub, timeToLive = TIME_TO_LIVE, requests = {} } = grant
  if (!isSubject(sub)) {
    throw new ArgumentError('grant.sub', `an id of 1 to ${MAX_TEXT} characters`, sub)
  }
  if (!isTimeToLive(timeToLive)) {
    throw new ArgumentError('grant.timeToLive', `an integer from 1000 to ${MAX_TIME_TO_LIVE}`, timeToLive)
  }
  checkRequests(requests)
  const checked = {
    sub,
    timeToLive,
    requests,
    views: textsOf('grant.views', grant.views),
    sources: textsOf('grant.sources', grant.sources),
    types: textsOf('grant.types', grant.types),
    omit: textsOf('grant.omit', grant.omit),
  }
  for (const [at, source] of checked.sources.entries()) {
    if (!/^[^*]*\*?$/.test(source)) {
      throw new ArgumentError(`grant.sources[${at}]`, 'a source, or a prefix with a * at its end', source)
    }
  }
  if (checked.omit.length > MAX_OMITTED) {
    throw new ArgumentError('grant.omit', `at most ${MAX_OMITTED} fields`, checked.omit)
  }
  for (const [at, path] of checked.omit.entries()) {
    const names = path.split('.')
    if (names.length > MAX_OMITTED_DEPTH || names.includes('')) {
      throw new ArgumentError(
        `grant.omit[${at}]`,
        `a name, or up to ${MAX_OMITTED_DEPTH} names with dots between them`,
        path,
      )
    }
  }
  if (views !== undefined) checkViews(checked.views, views)
  return checked
}

/** Whether the value can be a subject. */
export function isSubject(value: unknown): value is string {
  return isId(value) && value.length <= MAX_TEXT
}

function checkViews(granted: readonly string[], views: readonly string[]): void {
  for (const [at, name] of granted.entries()) {
    if (views.includes(name)) continue
    const nearest = nearestName(name, views)
    const hint = nearest === undefined ? '' : ` (did you mean ${nearest}?)`
    throw new ArgumentError(`grant.views[${at}]`, `the name of a view of this gateway${hint}`, name)
  }
}

function isTimeToLive(value: unknown): value is number {
  return (
    typeof value === 'number' && Number.isSafeInteger(value) && value >= 1000 && value <= MAX_TIME_TO_LIVE
  )
}

function checkRequests(requests: unknown): asserts requests is GrantedRequests {
  checkOptions('grant.requests', requests ?? null, ['search', 'addRuns'])
  checkObject('grant.requests', requests)
  const { search, addRuns } = requests
  if (search !== undefined) {
    checkOptions('grant.requests.search', search ?? null, ['perMinute'])
    checkObject('grant.requests.search', search)
    checkRate('grant.requests.search.perMinute', search['perMinute'])
  }
  if (addRuns !== undefined) {
    checkOptions('grant.requests.addRuns', addRuns ?? null, ['groups', 'perMinute', 'processors'])
    checkObject('grant.requests.addRuns', addRuns)
    const { groups, perMinute, processors } = addRuns
    if (!Array.isArray(groups)) throw new ArgumentError('grant.requests.addRuns.groups', 'an array', groups)
    for (const [at, group] of groups.entries()) checkId(`grant.requests.addRuns.groups[${at}]`, group)
    checkRate('grant.requests.addRuns.perMinute', perMinute)
    textsOf('grant.requests.addRuns.processors', processors)
  }
}

function checkRate(argument: string, perMinute: unknown): void {
  if (perMinute !== undefined) checkInteger(argument, perMinute, 1, MAX_RATE)
}

function textsOf(argument: string, texts: unknown): readonly string[] {
  if (texts === undefined) return []
  if (!Array.isArray(texts)) throw new ArgumentError(argument, 'an array', texts)
  return texts.map((text: unknown, at) => {
    if (typeof text !== 'string' || text === '' || text.length > MAX_TEXT || !text.isWellFormed()) {
      throw new ArgumentError(`${argument}[${at}]`, `text of 1 to ${MAX_TEXT} characters`, text)
    }
    return text
  })
}
