import { isObject } from '../../protocol/json.ts'
import { checkMeaning } from './check-meaning.ts'
import { complainOfShape } from './check-shape.ts'
import type { Complain } from './check-shape.ts'
import { compileRule } from './compile-rule.ts'
import type { CompiledRule } from '../compiled-rule.ts'
import { withDefaults } from './draft.ts'
import type { Defaults } from './draft.ts'
import type { Rule } from '../rule.ts'
import type { RuleProblem } from './problem.ts'
import { RuleError } from './problem.ts'
import { createRuleSet } from '../rule-set.ts'
import type { RuleSet } from '../rule-set.ts'
import { groupDefaultsSchema, MAX_RULES, outlineSchema, ruleSchema } from './schema.ts'
import { pathText } from './source.ts'
import type { Path, Source, Within } from './source.ts'

/** A rule as it stands in a source, and the group around it. */
interface Given {
  readonly source: Source
  readonly path: Path
  readonly content: unknown
  readonly group: GivenGroup | undefined
}

interface GivenGroup {
  readonly name: string | null
  readonly defaults: Defaults
  readonly path: Path
}

interface Checked {
  readonly given: Given
  readonly name: string
  readonly isEnabled: boolean
  readonly compiled: CompiledRule | undefined
}

/**
 * Checks the rules of all sources together.
 *
 * @param problems The problems that were found while the files were read.
 * @throws {RuleError} With these and with all that it finds.
 */
export function checkRules(sources: readonly Source[], problems: readonly RuleProblem[]): RuleSet {
  const report = new Report(problems)
  const rules = sources
    .flatMap((source) => rulesOf(source, report))
    .map((given) => checkRule(given, report))
    .filter((rule) => rule !== undefined)
  complainOfRepeatedNames(rules, report)
  if (report.problems.length > 0) throw new RuleError(inOrder(report.problems))
  const enabled = rules.filter(({ isEnabled }) => isEnabled)
  return createRuleSet(
    enabled.flatMap(({ compiled }) => compiled ?? []),
    rules.filter(({ isEnabled }) => !isEnabled).map(({ name }) => name),
  )
}

/** The problems of all files, file by file, in the order of each file's text. */
function inOrder(problems: readonly RuleProblem[]): readonly RuleProblem[] {
  const files = new Map<string | null, RuleProblem[]>()
  for (const problem of problems) {
    const others = files.get(problem.file)
    if (others === undefined) files.set(problem.file, [problem])
    else others.push(problem)
  }
  return Array.from(files.values()).flatMap((each) =>
    each.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0)),
  )
}

/** A problem at a path of a file. */
interface Found {
  readonly path: Path
  /** The name of the rule; null if it concerns none alone. */
  readonly rule: string | null
  readonly message: string
  readonly at?: Within | undefined
}

/** The problems that were found. A setting of a group is checked for each rule, and reported once. */
class Report {
  readonly problems: RuleProblem[]
  readonly #inDefaults = new Set<string>()

  constructor(problems: readonly RuleProblem[]) {
    this.problems = [...problems]
  }

  add(source: Source, { path, rule, message, at }: Found): void {
    const place = source.place(path, at)
    const named = at !== undefined && 'name' in at ? [...path, at.name] : path
    const hint =
      place.line === null && at !== undefined && 'offset' in at ? ` (character ${at.offset + 1})` : ''
    this.problems.push({
      file: source.file,
      ...place,
      path: pathText(named),
      rule,
      message: `${message}${hint}`,
    })
  }

  /** Like {@link add}, for a setting of a group. */
  addOnce(source: Source, path: Path, message: string, at?: Within): void {
    const identity = JSON.stringify([source.file, path, message, at])
    if (this.#inDefaults.has(identity)) return
    this.#inDefaults.add(identity)
    this.add(source, { path, rule: null, message, at })
  }
}

function rulesOf(source: Source, report: Report): Given[] {
  const { content } = source
  const complain: Complain = (path, message, at) => report.add(source, { path, rule: null, message, at })
  const outline = outlineSchema.safeParse(content)
  if (!outline.success) complainOfShape(outline.error.issues, content, outlineSchema, complain)
  if (!isObject(content)) return []
  if (content['rules'] === undefined && content['groups'] === undefined)
    complain([], 'The file has no rules: write rules, or groups with rules.')

  const rules = givenRules(source, content['rules'], ['rules'], undefined)
  for (const [index, each] of listOf(content['groups']).entries()) {
    if (!isObject(each)) continue
    const path = ['groups', index]
    const { name, defaults } = each
    const group = {
      name: typeof name === 'string' ? name : null,
      defaults: validDefaults(defaults),
      path: [...path, 'defaults'],
    }
    rules.push(...givenRules(source, each['rules'], [...path, 'rules'], group))
  }
  if (rules.length > MAX_RULES) {
    complain([], `The file has ${rules.length} rules: write at most ${MAX_RULES}.`)
    return []
  }
  return rules
}

function givenRules(source: Source, rules: unknown, path: Path, group: GivenGroup | undefined): Given[] {
  return listOf(rules).map((content, index) => ({ source, path: [...path, index], content, group }))
}

/** The defaults without problems; the outline has reported the others. */
function validDefaults(defaults: unknown): Defaults {
  if (!isObject(defaults)) return {}
  const { error, data } = groupDefaultsSchema.safeParse(defaults)
  if (data !== undefined) return data
  return groupDefaultsSchema.safeParse(without(defaults, brokenProperties(error.issues))).data ?? {}
}

function checkRule(given: Given, report: Report): Checked | undefined {
  const { source, path, content, group } = given
  const alert = isObject(content) ? content['alert'] : undefined
  const name = typeof alert === 'string' && alert !== '' ? alert : null
  const complain: Complain = (within, message, at) => {
    const inDefaults =
      isObject(content) && group !== undefined && isInherited(content, group.defaults, within, at)
    if (inDefaults) report.addOnce(source, [...group.path, ...within], message, at)
    else report.add(source, { path: [...path, ...within], rule: name, message, at })
  }
  const parsed = ruleSchema.safeParse(content)
  if (!parsed.success) complainOfShape(parsed.error.issues, content, ruleSchema, complain)
  if (!isObject(content)) return undefined

  const broken = brokenProperties(parsed.error?.issues ?? [])
  const rule = parsed.data ?? validPart(content, broken)
  if (rule === undefined) return undefined
  const draft = {
    group: group?.name ?? null,
    rule: withDefaults(rule, group?.defaults ?? {}),
    broken: Object.fromEntries(Object.entries(content).filter(([property]) => broken.has(property))),
    has: (property: keyof Rule) => content[property] !== undefined,
    needsUnits: source.needsUnits,
    complain,
  }
  checkMeaning(draft)
  const compiled = compileRule(draft)
  return name === null ? undefined : { given, name, isEnabled: draft.rule.enabled !== false, compiled }
}

/** Whether the value at this path is a default of the group. */
function isInherited(own: Fields, defaults: Defaults, path: Path, at: Within | undefined): boolean {
  const named = at !== undefined && 'name' in at ? [...path, at.name] : path
  const [property, entry] = named
  if (typeof property !== 'string' || !Object.hasOwn(defaults, property)) return false
  const value = own[property]
  if (property !== 'labels' && property !== 'annotations') return value === undefined
  return entry !== undefined && !(isObject(value) && Object.hasOwn(value, entry))
}

/** The rule without properties that have a problem. The checks that follow do not need its name. */
function validPart(content: Fields, broken: ReadonlySet<string>): Rule | undefined {
  return ruleSchema.safeParse({ alert: 'unnamed', ...without(content, broken) }).data
}

function brokenProperties(
  issues: readonly { readonly path: readonly PropertyKey[]; readonly code: string }[],
) {
  return new Set(
    issues.flatMap((issue) => {
      const [property] = issue.path
      if (property !== undefined) return [String(property)]
      return 'keys' in issue && Array.isArray(issue.keys) ? issue.keys.map(String) : []
    }),
  )
}

function complainOfRepeatedNames(rules: readonly Checked[], report: Report): void {
  const first = new Map<string, Given>()
  for (const { given, name } of rules) {
    const before = first.get(name)
    if (before === undefined) {
      first.set(name, given)
      continue
    }
    const { file, place } = before.source
    const { line } = place([...before.path, 'alert'])
    const where =
      line === null
        ? pathText(before.path)
        : `line ${line}${file === given.source.file || file === null ? '' : ` of ${file}`}`
    const message = `Another rule has this name (${where}): use another one.`
    report.add(given.source, { path: [...given.path, 'alert'], rule: name, message })
  }
}

type Fields = Readonly<Record<string, unknown>>

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function without(content: Fields, names: ReadonlySet<string>): Fields {
  return Object.fromEntries(Object.entries(content).filter(([name]) => !names.has(name)))
}
