import { stem } from '../corpus/stems.ts'

/** A subject of change that queries often name, and how documents state it. */
export interface Topic {
  readonly name: string
  /** The words of a query that ask for it. */
  readonly asks: string
  /** Matches a statement about it. */
  readonly says: RegExp
  /** Words to search for, as few statements have the words of the query. */
  readonly finds: string
  /** Whether its words in a heading make the statements below it statements about it. */
  readonly inHeadings: boolean
  /** Whether it only counts in a query without another topic: “security fixes” asks for security. */
  readonly isGeneral?: boolean
}

/** A heading with a version (`## [6.0.3] - 2026-03-03`), or a line with a version and its date. */
const VERSION_LINE =
  /^#{1,6}\s+(?:[\w@/.-]{1,80}\s+){0,2}\[?v?\d+\.\d+|^(?:version |release )?v?\d+\.\d+(?:\.\d+)*(?:-[\w.]+)?(?:\s*[-–—(/:,]\s*\(?(?:\d{4}-|\d{1,2}[ .]|[a-z]{3,9} \d).{0,40})?$/i
const RELEASED =
  /^#{1,6}\s+(?:version|release)\s+v?\d|^version: |\b(?:releas\w+|publish\w*|announc\w*|available|launch\w*)\b.{0,80}\bv?\d+\.\d|\bv?\d{1,9}\.\d\S{0,30}\s.{0,40}\b(?:releas\w+|published|announced|available|launched|is out)\b/i

/** The topics of monitors' queries. Short on purpose: other words are compared as words. */
const TOPICS: readonly Topic[] = [
  {
    name: 'security',
    asks: 'security vulnerability vulnerabilities vulnerable cve cves advisory advisories exploit exploits',
    says: /\b(?:security|vulnerab\w+|CVE-\d+\S*|GHSA-\S+|advisor(?:y|ies)|exploit\w*|XSS|CSRF|SSRF|injection|denial of service|remote code execution|prototype pollution|path traversal)\b/i,
    finds: 'security vulnerability vulnerable cve ghsa advisory exploit',
    inHeadings: true,
  },
  {
    name: 'deprecation',
    asks: 'deprecation deprecations deprecated deprecates deprecating obsolete',
    says: /\b(?:deprecat\w+|obsolete|end[- ]of[- ]life|sunset\w*|will be removed)\b/i,
    finds: 'deprecated deprecation obsolete sunset',
    inHeadings: true,
  },
  {
    name: 'breaking changes',
    asks: 'breaking incompatible incompatibility incompatibilities removal removals',
    says: /\b(?:breaking|incompatib\w+|(?:is|are|was|were|has been|have been|be) (?:removed|dropped)|drop(?:s|ped)? support|no longer|removed?:)(?![\w-])/i,
    finds: 'breaking incompatible removed dropped',
    inHeadings: true,
  },
  {
    name: 'price',
    asks: 'price prices priced pricing cost costs fee fees tariff tariffs charge charges',
    says: /\b(?:pric(?:e|es|ed|ing)|costs?|fees?|tariffs?|charg(?:e|es|ed)|euros?|dollars?|pounds?|francs?|EUR|USD|GBP|CHF|discounts?)\b|[€$£]\s?\d/i,
    finds: 'price pricing cost fee tariff charge euro dollar',
    inHeadings: true,
  },
  {
    name: 'hiring',
    asks: 'hiring hire job jobs vacancy vacancies opening openings recruiting recruitment',
    says: /\b(?:hir(?:e|es|ing)|jobs?|vacanc(?:y|ies)|openings|job opening|recruit\w*|looking for|seek(?:s|ing)?|(?:open|new) (?:position|role)s?|apply)\b/i,
    finds: 'hiring job vacancy opening position looking recruiting role',
    inHeadings: true,
  },
  {
    name: 'arrivals',
    asks: 'joined joins join joining arrivals newcomers appointed',
    says: /\b(?:join(?:s|ed)?|welcome[sd]?|appointed|was hired|started as|new (?:colleague|member|hire)s?)\b/i,
    finds: 'joined joins welcome appointed hired',
    inHeadings: true,
  },
  {
    name: 'departures',
    asks: 'left leaves leave leaving departure departures resigned resignations quit quits',
    says: /\b(?:left|leav(?:es|ing)|depart(?:s|ed|ure|ures)|resign\w*|retir(?:es|ed)|quits?|stepp(?:ed|ing) down|steps down)\b/i,
    finds: 'left leaves departed resigned retired',
    inHeadings: true,
  },
  {
    name: 'licence',
    asks: 'licence licences license licenses licensing licensed relicensed relicensing',
    says: /\b(?:re)?licen[cs](?:e|es|ed|ing)\b/i,
    finds: 'licence license licensed',
    inHeadings: true,
  },
  {
    name: 'performance',
    asks: 'performance speed speedup speedups faster throughput latency optimization optimizations optimisation optimisations',
    says: /\b(?:perform(?:s|ance)|speed\w*|fast(?:er)?|slow(?:er)?|throughput|latency|quick(?:er|ly)?|optimi[sz]\w+|less memory|memory use)\b/i,
    finds: 'performance speed fast faster slower throughput latency optimized memory',
    inHeadings: true,
  },
  {
    name: 'fixes',
    asks: 'fix fixes fixed fixing bugfix bugfixes bug bugs correction corrections corrected regression regressions',
    says: /\b(?:fix(?:e[sd])?|bug(?:s|fix\w*)?|correct(?:ed|s|ion)|repair(?:s|ed)|resolve[sd]|regressions?)\b/i,
    finds: 'fix fixed bug corrected resolved regression',
    inHeadings: true,
    isGeneral: true,
  },
  {
    name: 'releases',
    asks: 'release releases released version versions changelog launch launches',
    says: new RegExp(`${VERSION_LINE.source}|${RELEASED.source}`, 'i'),
    finds: 'release released version changelog',
    // A change below the heading of an old version is no new version.
    inHeadings: false,
    isGeneral: true,
  },
]

/** Words that often replace each other in notes and on pages, besides the words of technical prose. */
const WORD_GROUPS: readonly string[] = [
  'outage outages incident incidents downtime disruption disruptions failure failures breakdown',
  'event events conference conferences talk talks meetup meetups summit summits',
  'partner partners partnership partnerships supplier suppliers vendor vendors',
  'customer customers client clients',
  'closed closes closing closure closures shut',
  'policy policies rule rules regulation regulations guideline guidelines',
  'quota quotas limit limits limited allowance maximum',
  'plan plans planned roadmap milestone milestones',
  'holiday holidays vacation vacations',
  'speak speaks speaking speaker speakers keynote',
]

/** Words about the change itself, which each event is. */
const NOVELTY =
  'new newest newer newly latest recent recently current currently change changes changed changing update updates updated updating news ' +
  'notice announcement announcements announced when whenever happen happens happened happening added add adds anything ' +
  'something everything any every each notify alert tell watch monitor track follow inform report reports modification modifications ' +
  'please interested about regarding concerning want know get find show list'
/** Words that do not narrow the question down. */
const WEAK =
  'people person thing things day days time times date dates item items way ways kind kinds company organisation organization ' +
  'library libraries package packages project module tool tools page pages document documents name names number numbers one ones'

const noveltyStems: ReadonlySet<string> = new Set(NOVELTY.split(' ').map(stem))
const weakStems: ReadonlySet<string> = new Set(WEAK.split(' ').map(stem))
const topicOfStem: ReadonlyMap<string, Topic> = new Map(
  TOPICS.flatMap((topic) => topic.asks.split(' ').map((word): [string, Topic] => [stem(word), topic])),
)
const groupsOfStem: ReadonlyMap<string, readonly string[]> = groupsByStem()

function groupsByStem(): Map<string, string[]> {
  const groups = new Map<string, string[]>()
  for (const group of WORD_GROUPS) {
    const words = group.split(' ')
    for (const root of new Set(words.map(stem))) groups.set(root, [...(groups.get(root) ?? []), ...words])
  }
  return groups
}

/** Whether a word is about the change itself: `latest`, `updates`. */
export function isNovelty(root: string): boolean {
  return noveltyStems.has(root)
}

/** Whether a word does not narrow the question down. */
export function isWeak(root: string): boolean {
  return weakStems.has(root)
}

/** The topic that a word asks for. */
export function topicOf(root: string): Topic | undefined {
  return topicOfStem.get(root)
}

/** The words of {@link WORD_GROUPS} that may stand for a word. */
export function relatedWords(root: string): readonly string[] {
  return groupsOfStem.get(root) ?? []
}
