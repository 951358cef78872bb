import { dirname, isAbsolute, join } from 'node:path'
import { nearestName } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import type { CompiledRule } from '../compiled-rule.ts'
import type { RuleInput } from '../evaluate/event-time.ts'
import { complainOfShape } from '../rule-file/check-shape.ts'
import type { Complain } from '../rule-file/check-shape.ts'
import { displayValue } from '../rule-file/display-value.ts'
import { isRuleFile, pathsOf, readText } from '../rule-file/files.ts'
import { loadRules } from '../rule-file/load.ts'
import { RuleError } from '../rule-file/problem.ts'
import type { RuleProblem } from '../rule-file/problem.ts'
import { pathText } from '../rule-file/source.ts'
import type { Path, Place, Source } from '../rule-file/source.ts'
import { yamlSource } from '../rule-file/yaml-source.ts'
import { parseDuration } from '../../protocol/duration.ts'
import { compiledRules } from '../rule-set.ts'
import type { RuleSet } from '../rule-set.ts'
import { mergeEvents } from './merge-events.ts'
import type { WrittenEvent } from './merge-events.ts'
import { EXPECTED, KINDS, outlineSchema, SUBJECTS, testSchema } from './schema.ts'
import type { GivenEvent, GivenExpectation, GivenTest } from './schema.ts'
import { testEvent } from './test-events.ts'
import { testTime } from './test-time.ts'

/** The most events of a test, repeated ones included. */
const MAX_EVENTS = 200_000
/** The most merged events that are reported. */
const MAX_MERGED = 100
/** The longest test, in ms. */
const MAX_LENGTH = 10 * 366 * 86_400_000
const DEFAULT_START = Date.UTC(2026, 0, 1)

/** A test that was checked. Times in Unix ms. */
export interface LoadedTest {
  readonly name: string
  readonly file: string
  readonly place: Place
  readonly rules: readonly CompiledRule[]
  /** The paths of their files. */
  readonly ruleFiles: readonly string[]
  readonly start: number
  readonly until: number
  readonly isExact: boolean
  /** The events, in the order of their recording, those of the same source and id once. */
  readonly events: readonly RuleInput[]
  /** What was merged. */
  readonly merged: readonly { readonly message: string; readonly place: Place }[]
  readonly expectations: readonly Expectation[]
}

/** An expectation that was checked. */
export interface Expectation {
  readonly kind: (typeof EXPECTED)[number]
  /** The name of its rule; null for `none`. */
  readonly rule: string | null
  /** Time of the expectation, Unix ms; undefined for any time. */
  readonly at: number | undefined
  readonly since: number | undefined
  readonly given: GivenExpectation
  readonly place: Place
}

/** The tests of all files, and the sources of their rules. */
export interface LoadedTests {
  readonly tests: readonly LoadedTest[]
  /** The names of the rules, by rule file. */
  readonly ruleFiles: ReadonlyMap<string, readonly string[]>
}

/**
 * Reads and checks test files and their rule files.
 *
 * @throws {RuleError} With all problems of all files.
 */
export async function loadTests(patterns: readonly string[]): Promise<LoadedTests> {
  const problems: RuleProblem[] = []
  const loader = new RuleLoader(problems)
  const tests: LoadedTest[] = []
  for (const file of await pathsOf(patterns, problems)) {
    const text = await readText(file, problems)
    const source = text === undefined ? undefined : yamlSource(text, file, problems)
    if (source !== undefined) tests.push(...(await testsOf(source, file, loader, problems)))
  }
  if (problems.length > 0) throw new RuleError(problems)
  return { tests, ruleFiles: loader.files }
}

interface LoadedRules {
  readonly set: RuleSet
  readonly files: readonly string[]
}

/** Loads the rule files of test files, each combination once. */
class RuleLoader {
  /** The names of the rules, by rule file. */
  readonly files = new Map<string, readonly string[]>()
  readonly #problems: RuleProblem[]
  readonly #seen = new Set<string>()
  readonly #sets = new Map<string, Promise<RuleSet | undefined>>()

  constructor(problems: RuleProblem[]) {
    this.#problems = problems
  }

  /** Undefined if they have problems. */
  async load(paths: readonly string[]): Promise<LoadedRules | undefined> {
    const files = await pathsOf(paths, this.#problems, isRuleFile)
    if (files.length === 0) return undefined
    const id = JSON.stringify(files)
    const known = this.#sets.get(id) ?? this.#load(files)
    this.#sets.set(id, known)
    const set = await known
    // The coverage needs the rules of each file.
    if (set !== undefined) {
      for (const file of files) {
        const own = files.length === 1 ? set : await this.#load([file])
        if (own !== undefined) this.files.set(file, own.names)
      }
    }
    return set === undefined ? undefined : { set, files }
  }

  async #load(files: readonly string[]): Promise<RuleSet | undefined> {
    try {
      return await loadRules(files)
    } catch (error) {
      if (!(error instanceof RuleError)) throw error
      // Files of several tests have the same problems.
      for (const problem of error.problems) {
        const id = JSON.stringify(problem)
        if (!this.#seen.has(id)) this.#problems.push(problem)
        this.#seen.add(id)
      }
      return undefined
    }
  }
}

async function testsOf(
  source: Source,
  file: string,
  loader: RuleLoader,
  problems: RuleProblem[],
): Promise<readonly LoadedTest[]> {
  const { content } = source
  const complain: Complain = (path, message, at) => {
    const named = at !== undefined && 'name' in at ? [...path, at.name] : path
    problems.push({ file, ...source.place(path, at), path: pathText(named), rule: null, message })
  }
  const outline = outlineSchema.safeParse(content)
  if (!outline.success) complainOfShape(outline.error.issues, content, outlineSchema, complain)
  if (!isObject(content)) return []
  const paths = textsOf(content['rules'])
  const rules = await loader.load(paths.map((path) => (isAbsolute(path) ? path : join(dirname(file), path))))
  const tests: LoadedTest[] = []
  const names = new Map<string, number | null>()
  const given: readonly unknown[] = Array.isArray(content['tests']) ? content['tests'] : []
  for (const [index, test] of given.entries()) {
    const path = ['tests', index]
    const within: Complain = (below, message, at) => complain([...path, ...below], message, at)
    const parsed = testSchema.safeParse(test)
    if (!parsed.success) {
      complainOfShape(parsed.error.issues, test, testSchema, within)
      continue
    }
    const before = names.get(parsed.data.name)
    if (before !== undefined)
      within(['name'], `Another test has this name (line ${before}): use another one.`)
    const place = source.place([...path, 'name'])
    names.set(parsed.data.name, place.line)
    const loaded = new TestReader(parsed.data, rules?.set, within, (below) =>
      source.place([...path, ...below]),
    )
    tests.push({ ...loaded.read(file, place), ruleFiles: rules?.files ?? [] })
  }
  return tests
}

/** Reads one test, whose properties are valid one by one. */
class TestReader {
  readonly #given: GivenTest
  readonly #set: RuleSet | undefined
  readonly #complain: Complain
  readonly #place: (path: Path) => Place
  readonly #start: number

  constructor(given: GivenTest, set: RuleSet | undefined, complain: Complain, place: (path: Path) => Place) {
    this.#given = given
    this.#set = set
    this.#complain = complain
    this.#place = place
    this.#start = this.#time(given.start, ['start'], 0) ?? DEFAULT_START
  }

  read(file: string, place: Place): Omit<LoadedTest, 'ruleFiles'> {
    const { name, exact = false, until, events = [], expect } = this.#given
    const written = this.#events(events)
    const { events: recorded, merged } = mergeEvents(
      written.toSorted((a, b) => (a.event.recorded ?? 0) - (b.event.recorded ?? 0)),
    )
    const expectations = expect.flatMap((given, index) => this.#expectation(given, ['expect', index]) ?? [])
    const times = [
      this.#start,
      this.#time(until, ['until'], this.#start) ?? this.#start,
      ...written.map(({ event }) => event.recorded ?? 0),
      ...expectations.map(({ at }) => at ?? 0),
    ]
    return {
      name,
      file,
      place,
      rules: this.#set === undefined ? [] : compiledRules(this.#set),
      start: this.#start,
      // Times are compared in whole seconds.
      until: times.reduce((latest, time) => Math.max(latest, time), 0) + 999,
      isExact: exact,
      events: recorded,
      merged: merged.slice(0, MAX_MERGED).map(({ source, id, count, path }) => ({
        place: this.#place(path),
        message: `${count} events are one event, since they have the same source and id: ${source}, ${id}`,
      })),
      expectations,
    }
  }

  #events(events: readonly GivenEvent[]): readonly WrittenEvent[] {
    const written: WrittenEvent[] = []
    let count = 0
    for (const [index, given] of events.entries()) {
      const path = ['events', index]
      if (!this.#checkEvent(given, path)) continue
      const { times = 1, id = `event_${index + 1}` } = given
      const at = this.#time(given.at, [...path, 'at'], this.#start) ?? this.#start
      count += times
      if (count > MAX_EVENTS) {
        this.#complain(path, `The test has more than ${MAX_EVENTS} events: use fewer times.`)
        break
      }
      const every = parseDuration(given.every ?? 0) ?? 0
      const late = (this.#time(given.recorded, [...path, 'recorded'], this.#start) ?? at) - at
      if (late < 0)
        this.#complain(
          [...path, 'recorded'],
          'recorded must not be before at: an event is recorded after it.',
        )
      if (at + times * every - this.#start > MAX_LENGTH) {
        this.#complain(path, 'A test takes at most 10 years: use fewer times, or a shorter every.')
        continue
      }
      for (let n = 0; n < times; n++) {
        const moment = at + n * every
        const event = testEvent(given, n === 0 ? id : `${id}-${n + 1}`, moment, moment + Math.max(late, 0))
        written.push({ event, isRevised: given.revision !== undefined, path })
      }
    }
    return written
  }

  /** Whether an event can be made of it. */
  #checkEvent(given: GivenEvent, path: Path): boolean {
    const kinds = KINDS.filter((kind) => given[kind] !== undefined)
    // The message of a run that failed.
    const others = kinds.filter((kind) => !(kind === 'error' && given.state !== undefined))
    const [kind, second] = others
    const refuse = (message: string, name?: string) => {
      this.#complain(path, message, name === undefined ? undefined : { name })
      return false
    }
    if (kind === undefined) return refuse(`The event has no kind: write one of ${KINDS.join(', ')}.`)
    if (second !== undefined)
      return refuse(`An event is either ${kind} or ${second}: write two events.`, second)
    const [subject, another] = SUBJECTS.filter(
      (each) => given[each] !== undefined && !(kind === 'state' && each === 'group'),
    )
    if (subject !== undefined && another !== undefined)
      return refuse(`An event comes either from ${subject} or ${another}: remove one.`, another)
    const own = SUBJECTS_OF[kind]
    if (subject !== undefined && own !== undefined && !own.includes(subject))
      return refuse(
        own.length === 0
          ? `${kind} has no ${subject}: remove it.`
          : `${kind} comes from ${own.join(' or ')}, not from ${subject}.`,
        subject,
      )
    if ((given.every === undefined) !== (given.times === undefined)) {
      const [present, missing] = given.every === undefined ? ['times', 'every'] : ['every', 'times']
      return refuse(`${present} needs ${missing}: write both, such as every: 5m, times: 12.`, present)
    }
    const hasOutput = kind === 'event_stream' || kind === 'snapshot' || given.output !== undefined
    for (const name of ['citations', 'confidence', 'excerpts'] as const)
      if (given[name] !== undefined && !hasOutput)
        return refuse(`${name} belongs to an output, and this event has none: remove it.`, name)
    for (const [name, of] of Object.entries(ONLY)) {
      if (Reflect.get(given, name) !== undefined && !of.includes(kind))
        return refuse(`${name} belongs to ${of.join(' or ')}, not to ${kind}: remove it.`, name)
    }
    if (kind === 'status' && given.metadata !== undefined && given.find_all === undefined)
      return refuse(
        'metadata belongs to the status of a FindAll run, not of a task group: write find_all, or remove it.',
        'metadata',
      )
    return true
  }

  #expectation(given: GivenExpectation, path: Path): Expectation | undefined {
    const kinds = EXPECTED.filter((kind) => given[kind] !== undefined)
    const [kind, second] = kinds
    const refuse = (message: string, below: Path = path, name?: string) => {
      this.#complain(below, message, name === undefined ? undefined : { name })
      return undefined
    }
    if (kind === undefined)
      return refuse(`The expectation says nothing: write one of ${EXPECTED.join(', ')}.`)
    if (second !== undefined)
      return refuse(`An expectation is either ${kind} or ${second}: write two.`, path, second)
    const isState = kind === 'active' || kind === 'inactive' || kind === 'none'
    if (isState && given.at === undefined) return refuse(`${kind} is a state at a time: write at.`)
    if (kind === 'never' && given.at !== undefined)
      return refuse('never is about the whole test: remove at, or write inactive.', path, 'at')
    const rule = kind === 'none' ? null : (given[kind] ?? null)
    if (rule !== null && this.#set !== undefined && !this.#checkRule(rule, [...path, kind], given, path))
      return undefined
    for (const [name, of] of Object.entries(FIELDS_OF)) {
      if (Reflect.get(given, name) !== undefined && !of.includes(kind))
        return refuse(`${kind} has no ${name}: remove it.`, path, name)
    }
    return {
      kind,
      rule,
      at: this.#time(given.at, [...path, 'at'], this.#start),
      since: this.#time(given.since, [...path, 'since'], this.#start),
      given,
      place: this.#place(path),
    }
  }

  #checkRule(name: string, path: Path, given: GivenExpectation, below: Path): boolean {
    const set = this.#set
    const rule = set === undefined ? undefined : compiledRules(set).find((each) => each.name === name)
    if (rule === undefined) {
      const isDisabled = set?.disabled.includes(name) === true
      const near = nearestName(name, set?.names ?? [])
      const names = (set?.names ?? []).slice(0, 20).join(', ')
      const hint = near === undefined ? `there are ${names}.` : `did you mean ${near}?`
      this.#complain(
        path,
        isDisabled
          ? `The rule ${displayValue(name)} is disabled: remove enabled: false.`
          : `There is no rule ${displayValue(name)}: ${hint}`,
      )
      return false
    }
    const known = keyNamesOf(rule)
    const wrong = Object.keys(given.key ?? {}).find((each) => !known.includes(each))
    if (wrong !== undefined) {
      const hint = known.length === 0 ? 'remove key' : `write one of ${known.join(', ')}`
      this.#complain([...below, 'key'], `${name} has no key ${displayValue(wrong)}: ${hint}.`, {
        name: wrong,
      })
      return false
    }
    return true
  }

  #time(given: string | number | undefined, path: Path, start: number): number | undefined {
    if (given === undefined) return undefined
    const at = testTime(given, start)
    if (Number.isNaN(at)) this.#complain(path, `${displayValue(given)} is no time: this date does not exist.`)
    else if (path[0] !== 'start' && (at < start || at - start > MAX_LENGTH))
      this.#complain(path, `${displayValue(given)} must be after the start of the test, and within 10 years.`)
    else return at
    return undefined
  }
}

/** Which subjects a kind of event has; undefined for all. */
const SUBJECTS_OF: Readonly<Record<string, readonly string[] | undefined>> = {
  event_stream: ['monitor'],
  snapshot: ['monitor'],
  completion: ['monitor'],
  error: ['monitor', 'group'],
  cancelled: ['monitor'],
  state: ['run', 'group'],
  status: ['group', 'find_all'],
  progress: ['run'],
  message: ['run'],
  candidate: ['find_all'],
}

/** Which kinds of events have a property. */
const ONLY: Readonly<Record<string, readonly string[]>> = {
  previous: ['snapshot'],
  input: ['state'],
  output: ['state', 'candidate'],
  name: ['candidate'],
  data: ['type'],
  metadata: ['state', 'status', 'cancelled'],
  event_date: ['event_stream', 'snapshot'],
}

/** Which kinds of expectations have a property. */
const FIELDS_OF: Readonly<Record<string, readonly string[]>> = {
  key: ['firing', 'resolved', 'unknown', 'late', 'active', 'inactive', 'never'],
  labels: ['firing', 'resolved', 'unknown', 'active', 'inactive', 'never'],
  annotations: ['firing', 'resolved', 'active'],
  value: ['firing', 'resolved', 'active'],
  since: ['firing', 'resolved', 'active', 'unknown', 'late'],
  reason: ['resolved', 'unknown'],
  events: ['firing', 'resolved', 'active', 'late'],
}

function keyNamesOf({ key, isPerEvent, windows }: CompiledRule): readonly string[] {
  const isAbsence = windows.some(({ kind }) => kind === 'absence')
  return [
    ...key.map(({ name }) => name),
    ...(isPerEvent ? ['event'] : []),
    ...(isPerEvent || isAbsence ? ['source'] : []),
  ]
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string' && each !== '') : []
}
