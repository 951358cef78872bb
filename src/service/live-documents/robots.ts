/** Maximum length that is parsed, in bytes (RFC 9309, 2.5). */
export const MAX_ROBOTS_BYTES = 500 * 1024
/** Maximum number of rules of a group, and of `*` in a rule: matching a path takes time for each. Further ones are ignored. */
const MAX_RULES = 10_000
const MAX_WILDCARDS = 16
/** The name that groups are selected by, in lower case. */
const PRODUCT = 'rivulet'

/** The rules of a site for this service. */
export interface RobotsRules {
  /** Whether a URL may be requested. */
  isAllowed(url: URL): boolean
  /** The delay between two requests that the site asks for, in s; undefined if it asks for none. */
  readonly crawlDelay: number | undefined
}

/** A rule. Its pattern in parts: `*` stands between two of them, `$` is `isEnd`. */
interface Rule {
  readonly isAllowing: boolean
  readonly parts: readonly string[]
  readonly isEnd: boolean
  /** The longest matching rule decides. */
  readonly length: number
}

interface Group {
  readonly rules: Rule[]
  crawlDelay: number | undefined
}

/** Rules that allow everything: the rules of a site without a robots.txt. */
export const ALLOW_ALL: RobotsRules = { isAllowed: () => true, crawlDelay: undefined }

/**
 * Parses a robots.txt by RFC 9309: of the groups for this service, else of those for `*`, the longest matching rule decides,
 * and `allow` decides between two of the same length. Lines that are not understood are ignored.
 */
export function parseRobots(text: string): RobotsRules {
  const own: Group = { rules: [], crawlDelay: undefined }
  const general: Group = { rules: [], crawlDelay: undefined }
  let hasOwn = false
  let selected: readonly Group[] = []
  let isInAgents = false
  for (const line of text.replace(/^\uFEFF/, '').split(/\r\n?|\n/)) {
    const content = line.split('#', 1).join('')
    const colon = content.indexOf(':')
    if (colon < 0) continue
    const field = content.slice(0, colon).trim().toLowerCase()
    const value = content.slice(colon + 1).trim()
    if (field === 'user-agent') {
      // Adjacent agents share the group that follows.
      if (!isInAgents) selected = []
      isInAgents = true
      const product = /^[a-z_-]+/i.exec(value)?.[0].toLowerCase()
      if (value.startsWith('*')) selected = [...selected, general]
      else if (product === PRODUCT) {
        hasOwn = true
        selected = [...selected, own]
      }
    } else if (field === 'allow' || field === 'disallow') {
      isInAgents = false
      const rule = parseRule(field === 'allow', value)
      if (rule !== undefined) for (const { rules } of selected) if (rules.length < MAX_RULES) rules.push(rule)
    } else if (field === 'crawl-delay') {
      isInAgents = false
      const delay = value === '' ? Number.NaN : Number(value)
      if (Number.isFinite(delay) && delay >= 0) for (const group of selected) group.crawlDelay ??= delay
    }
  }
  const { rules, crawlDelay } = hasOwn ? own : general
  return { isAllowed: (url) => isAllowed(rules, url), crawlDelay }
}

function parseRule(isAllowing: boolean, value: string): Rule | undefined {
  // An empty rule matches nothing. A path begins with a slash.
  if (value === '') return undefined
  const pattern = normalized(value.startsWith('/') || value.startsWith('*') ? value : `/${value}`)
  const isEnd = pattern.endsWith('$')
  const parts = (isEnd ? pattern.slice(0, -1) : pattern).split(/\*+/)
  return parts.length > MAX_WILDCARDS + 1 ? undefined : { isAllowing, parts, isEnd, length: pattern.length }
}

function isAllowed(rules: readonly Rule[], { pathname, search }: URL): boolean {
  if (pathname === '/robots.txt') return true
  const path = normalized(pathname + search)
  let best: Rule | undefined
  for (const rule of rules) {
    if (best !== undefined && rule.length < best.length) continue
    const isBetter = best === undefined || rule.length > best.length || rule.isAllowing
    if (isBetter && matches(rule, path)) best = rule
  }
  return best?.isAllowing ?? true
}

/** The leftmost match of each part is the best one, so no part is tried twice. */
function matches({ parts: [first = '', ...others], isEnd }: Rule, path: string): boolean {
  if (!path.startsWith(first)) return false
  const last = others.pop()
  if (last === undefined) return !isEnd || path.length === first.length
  let at = first.length
  for (const part of others) {
    const found = path.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return isEnd ? path.length - last.length >= at && path.endsWith(last) : path.includes(last, at)
}

/** One form of percent-encoding: characters outside of ASCII encoded, hex digits in upper case, unreserved characters plain. */
function normalized(path: string): string {
  const encoded = path.toWellFormed().replaceAll(/[^\u0021-\u007E]+/g, encodeURIComponent)
  return encoded.replaceAll(/%([0-9a-f]{2})/gi, (octet, hex: string) => {
    const character = String.fromCodePoint(Number.parseInt(hex, 16))
    return /[A-Za-z0-9._~-]/.test(character) ? character : octet.toUpperCase()
  })
}
