import { isId } from '../../protocol/id.ts'
import type { Duration, Rule } from '../rule.ts'
import { displayValue } from './display-value.ts'
import { AGGREGATES, LEVELS, SINGLES } from './draft.ts'
import type { Draft } from './draft.ts'
import { MAX_DURATION, parseDuration } from '../../protocol/duration.ts'
import { resolveAfter } from './rule-defaults.ts'
import { MAX_EVENTS } from './schema.ts'
import type { Path } from './source.ts'

/** Reports the problems of a rule whose properties are valid, one by one. */
export function checkMeaning(draft: Draft): void {
  checkWindows(draft)
  checkAbsence(draft)
  checkPerEvent(draft)
  checkDurations(draft)
  checkBounds(draft)
  checkEnd(draft)
  checkLabels(draft)
}

function checkWindows({ has, rule, complain }: Draft): void {
  const levels = LEVELS.filter(has)
  const singles = SINGLES.filter(has)
  const [first, ...others] = [...singles, ...levels]
  if (first === undefined) {
    if (!has('when') && !has('on') && rule.on === undefined)
      complain([], 'The rule has no condition: write when, on, or a window such as count.')
  } else if (singles.length > 0) {
    for (const name of others) {
      const message = `${name} cannot stand beside ${first}: write a rule for each. Only ${LEVELS.join(', ')} can be combined.`
      complain([], message, { name })
    }
  }
}

function checkAbsence({ has, rule: { absence }, complain }: Draft): void {
  if (!has('absence')) return
  const refuse = (name: 'key' | 'per' | 'on' | 'resolve', message: string) => {
    if (has(name)) complain([], message, { name })
  }
  refuse('key', 'A rule with absence has no key: it watches each source separately. Remove key.')
  refuse('per', 'A rule with absence has no per: remove it.')
  refuse('on', 'A rule with absence has its types in absence: write on there.')
  refuse('resolve', 'A rule with absence ends with the next report: remove resolve.')
  for (const [index, source] of absence?.of?.entries() ?? []) {
    const path = ['absence', 'of', index]
    if (!isId(source)) {
      complain(path, `${displayValue(source)} is neither an id nor a source: write one such as monitor_1.`)
    } else if (source.startsWith('/') && !source.startsWith('/v1/monitors/') && absence?.on === undefined) {
      complain(
        path,
        `${displayValue(source)} is no monitor: write in absence.on which of its events count as reports.`,
      )
    }
  }
}

function checkPerEvent({ has, rule, complain }: Draft): void {
  if (rule.per === undefined) return
  const window = [...LEVELS, ...SINGLES].find(has)
  if (window !== undefined && window !== 'absence') {
    complain([], `per: event has no use with ${window}, which compares events: write a key instead.`, {
      name: 'per',
    })
  }
  for (const name of ['event', 'source'])
    if (Object.hasOwn(rule.key ?? {}, name))
      complain(['key'], `per: event adds a key of the name ${name}: use another name.`, { name })
}

function checkDurations({ rule, needsUnits, complain }: Draft): void {
  const check = (duration: Duration | undefined, least: 0 | 1, path: Path) => {
    if (needsUnits && typeof duration === 'number' && duration !== 0) {
      complain(path, `${path.join('.')} has no unit: write ${duration}s, ${duration}m or ${duration}ms.`)
      return
    }
    const ms = duration === undefined ? least : (parseDuration(duration) ?? Number.NaN)
    if (ms >= least && ms <= MAX_DURATION) return
    const range = least === 0 ? 'at most 366d' : 'from 1ms to 366d'
    complain(path, `${path.join('.')} must be ${range}, not ${displayValue(duration)}.`)
  }
  check(rule.for, 0, ['for'])
  check(rule.keep_firing_for, 0, ['keep_firing_for'])
  check(rule.lateness, 0, ['lateness'])
  check(rule.resolve?.after, 1, ['resolve', 'after'])
  check(rule.rate?.per, 1, ['rate', 'per'])
  for (const level of LEVELS) check(rule[level]?.over, 1, [level, 'over'])
  for (const name of ['new', 'absence', 'sequence'] as const) check(rule[name]?.within, 1, [name, 'within'])
}

function checkBounds({ has, rule, complain }: Draft): void {
  const { rate, sequence, spike } = rule
  for (const name of AGGREGATES) {
    const { gte, lte } = rule[name] ?? {}
    if (rule[name] !== undefined && gte === undefined && lte === undefined)
      complain([name], `${name} has no bound: write gte, lte or both.`)
    if (gte !== undefined && lte !== undefined && gte > lte)
      complain([name, 'gte'], `${name}.gte must not be more than ${name}.lte, not ${gte}: no number is both.`)
  }
  const over = parseDuration(rate?.over ?? 0) ?? 0
  const per = parseDuration(rate?.per ?? 0) ?? 0
  if (rate !== undefined && per > 0 && (rate.gte * over) / per > MAX_EVENTS) {
    const message = `rate.gte needs ${Math.ceil((rate.gte * over) / per)} events within ${rate.over}, and a rule remembers ${MAX_EVENTS}: write a shorter rate.over.`
    complain(['rate', 'gte'], message)
  }
  if (spike !== undefined && spike.min === undefined && spike.factor > 1_000)
    complain(
      ['spike', 'factor'],
      `spike.factor must be at most 1000 where spike.min is not set, not ${spike.factor}.`,
    )
  if (has('sequence') && sequence?.steps.length === 1 && sequence.not_then === undefined) {
    const message = 'A sequence of one step needs not_then: write it, or a second step, or use when.'
    complain(['sequence', 'steps'], message)
  }
}

function checkEnd({ has, rule, complain }: Draft): void {
  const level = LEVELS.find(has)
  if (level !== undefined && rule.resolve?.after !== undefined) {
    complain(['resolve'], `A rule with ${level} ends when it does not hold any more: remove resolve.after.`, {
      name: 'after',
    })
  }
  if (level !== undefined || has('absence')) return
  const wait = parseDuration(rule.for ?? 0) ?? 0
  const after = resolveAfter(rule)
  if (wait > 0 && wait >= after) {
    const end =
      rule.resolve?.after === undefined ? `its default, ${after / 60_000}m` : String(rule.resolve.after)
    const message = `for must be shorter than resolve.after (${end}), since the alert would end before it fires: write a longer resolve.after.`
    complain(['for'], message)
  }
}

function checkLabels({ has, rule, complain }: Draft): void {
  const reserved = 'is the name of the rule: use another name.'
  for (const property of ['key', 'labels'] as const) {
    if (Object.hasOwn(rule[property] ?? {}, 'alertname'))
      complain([property], `The label alertname ${reserved}`, { name: 'alertname' })
  }
  const taken = keyNames(rule, has('absence'))
  for (const name of Object.keys(rule.labels ?? {})) {
    if (taken.includes(name))
      complain(['labels'], `The label ${name} is a key already: remove it, or use another name.`, { name })
  }
}

/** The names of the key, which are labels as well. */
export function keyNames(rule: Rule, isAbsence = rule.absence !== undefined): readonly string[] {
  return [
    ...Object.keys(rule.key ?? {}),
    ...(rule.per === 'event' ? ['event'] : []),
    ...(rule.per === 'event' || isAbsence ? ['source'] : []),
  ]
}
