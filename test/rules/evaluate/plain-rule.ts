import { Problem } from '../../../src/rules/cel/expression.ts'
import type { EventView, Expression, Template } from '../../../src/rules/cel/expression.ts'
import type { CompiledRule, Window } from '../../../src/rules/compiled-rule.ts'
import type { Json } from '../../../src/protocol/json.ts'
import { cancelledEvent } from '../../../src/protocol/event.ts'
import type { RuleInput } from '../../../src/rules/evaluate/event-time.ts'

/** Midnight, so that a day is a time of the streams. */
export const BASE = Date.parse('2026-03-02')

/** What the conditions of a test can see of an event. */
export interface Fields {
  /** A condition is a bit. */
  readonly bits: number
  readonly key: string | null
  /** Null where the event does not have it. */
  readonly value: number | null
  readonly values: readonly number[]
}

/** An event of a test. Times in ms after {@link BASE}. */
export interface Sample {
  readonly id: string
  readonly source: string
  readonly type: RuleInput['type']
  /** Where rules place it. */
  readonly at: number
  readonly recorded: number
  readonly revision: number
  readonly backfill: 'no' | 'dated' | 'undated'
  readonly fields: Fields
  /** For a gap of the source: the times of the events before and after it, if they are known. */
  readonly gap?: { readonly from: number | null; readonly to: number | null }
}

/** A condition: a bit of an event; with `changed`, only where its value is another one than before. */
export interface Condition {
  readonly bit: number
  readonly changed?: boolean
}

/** The windows over a number of each event. */
export const AGGREGATES = ['sum', 'avg', 'min', 'max', 'percentile'] as const

export type PlainWindow =
  | {
      readonly kind: (typeof AGGREGATES)[number]
      readonly when: Condition | null
      readonly over: number
      readonly gte: number | null
      readonly lte: number | null
      readonly p: number
    }
  | {
      readonly kind: 'count'
      readonly when: Condition | null
      readonly over: number
      readonly gte: number
    }
  | {
      readonly kind: 'distinct'
      readonly when: Condition | null
      readonly over: number
      readonly gte: number
    }
  | {
      readonly kind: 'rate'
      readonly when: Condition | null
      readonly over: number
      readonly per: number
      readonly gte: number
    }
  | {
      readonly kind: 'spike'
      readonly when: Condition | null
      readonly over: number
      readonly factor: number
      readonly min: number
    }
  | { readonly kind: 'new'; readonly when: Condition | null; readonly within: number }
  | { readonly kind: 'changed'; readonly when: Condition | null }
  | {
      readonly kind: 'sequence'
      readonly steps: readonly Condition[]
      readonly notThen: Condition | null
      readonly within: number
    }
  | { readonly kind: 'absence'; readonly within: number; readonly of: ReadonlySet<string> }

/** A rule of a test. Times in ms. */
export interface PlainRule {
  readonly when: Condition | null
  readonly windows: readonly PlainWindow[]
  readonly keyedBy: 'nothing' | 'field' | 'source'
  readonly isPerEvent: boolean
  /** To one that reads events alone, a gap of a source is no event. One that names no types reads everything. */
  readonly reads: 'events' | 'events and gaps' | 'everything'
  readonly resolveWhen: Condition | null
  readonly after: number
  readonly for: number
  readonly keepFiringFor: number
  readonly lateness: number
  readonly backfill: 'ignore' | 'place'
}

/** The number of an event, below and above 0, whose sums depend on their order. */
export function numberOf({ value }: Fields): number | null {
  return value === null ? null : (value - 1) / 10
}

class FieldsView implements EventView {
  readonly isCut = false
  readonly work = { left: Infinity }
  readonly fields: Fields
  readonly source: string

  constructor(fields: Fields, source: string) {
    this.fields = fields
    this.source = source
  }
}

/** An expression that is a function. */
export function expression(
  text: string,
  evaluate: (fields: Fields, changed: readonly boolean[]) => Json | undefined,
  watched: readonly Expression[] = [],
): Expression {
  return {
    text,
    watched,
    evaluate(view, changed = []) {
      const value = view instanceof FieldsView ? evaluate(view.fields, changed) : undefined
      return value === undefined ? new Problem('missing', text) : value
    },
  }
}

/** A template without parts of an event. */
function template(text: string): Template {
  return {
    text,
    fromEvent: () => [],
    render: (_parts, { key, value }) => `${text} ${JSON.stringify(key)} ${value}`,
  }
}

/** A value by itself, or several as a list. */
const oneOrMore = expression('one or more', ({ values }) => {
  const [first] = values
  return values.length === 1 && first !== undefined ? first : values
})

/** Each rule that has it as its only key has a state for each source. */
const sourceOf: Expression = {
  text: 'source',
  watched: [],
  evaluate: (view) => (view instanceof FieldsView ? view.source : new Problem('missing', 'source')),
}

const number = expression('number', (fields) => numberOf(fields) ?? undefined)

const valueOf = expression('value', ({ value }) => value ?? undefined)

function condition({ bit, changed = false }: Condition): Expression {
  const holds = ({ bits }: Fields) => (bits & (1 << bit)) !== 0
  if (!changed) return expression(`bit ${bit}`, holds)
  return expression(`bit ${bit} && changed(value)`, (fields, [is = false]) => holds(fields) && is, [valueOf])
}

const TYPES: Readonly<Record<PlainRule['reads'], CompiledRule['types']>> = {
  events: new Set(['unknown', 'task_run.state']),
  'events and gaps': new Set(['unknown', 'task_run.state', 'stream.gap']),
  everything: undefined,
}

const KEYS: Readonly<Record<PlainRule['keyedBy'], CompiledRule['key']>> = {
  nothing: [],
  field: [{ name: 'key', value: expression('key', ({ key }) => key ?? undefined) }],
  source: [{ name: 'source', value: sourceOf }],
}

/** The rule as the engine takes it. */
export function compiled(rule: PlainRule, name = 'R'): CompiledRule {
  const optional = (given: Condition | null) => (given === null ? undefined : condition(given))
  const windowOf = (window: PlainWindow): Window => {
    switch (window.kind) {
      case 'absence':
        return window
      case 'sequence':
        return { ...window, steps: window.steps.map(condition), notThen: optional(window.notThen) }
      case 'distinct':
        return { ...window, when: optional(window.when), value: expression('values', ({ values }) => values) }
      case 'new':
        return { ...window, when: optional(window.when), value: oneOrMore }
      case 'sum':
      case 'avg':
      case 'min':
      case 'max':
      case 'percentile': {
        const { gte, lte } = window
        const bounds = { gte: gte ?? undefined, lte: lte ?? undefined }
        return { ...window, ...bounds, when: optional(window.when), value: number }
      }
      case 'changed':
        return { ...window, when: optional(window.when), value: valueOf }
      default:
        return { ...window, when: optional(window.when) }
    }
  }
  return {
    name,
    group: null,
    types: TYPES[rule.reads],
    version: '00000001',
    when: optional(rule.when),
    windows: rule.windows.map(windowOf),
    key: KEYS[rule.keyedBy],
    isPerEvent: rule.isPerEvent,
    labels: new Map([['team', template('research')]]),
    annotations: new Map([['summary', template('it is so')]]),
    resolve: { when: optional(rule.resolveWhen), after: rule.after },
    for: rule.for,
    keepFiringFor: rule.keepFiringFor,
    lateness: rule.lateness,
    backfill: rule.backfill,
  }
}

const fieldsOf = new WeakMap<RuleInput, Fields>()

/** What expressions see of an event of {@link inputOf}. */
export function viewOf(event: RuleInput): EventView {
  const fields = fieldsOf.get(event) ?? { bits: 0, key: null, value: null, values: [] }
  return new FieldsView(fields, event.source)
}

const text = (at: number) => new Date(BASE + at).toISOString()

/** The event of a sample. */
export function inputOf(sample: Sample): RuleInput {
  const { id, source, type, at, recorded, revision, backfill, fields, gap } = sample
  const envelope = {
    id,
    source,
    // A fuller revision has the time of the first one.
    time: backfill === 'dated' ? text(at + 5) : text(revision > 1 ? at - 1 : at),
    received: text(revision > 1 ? at : recorded),
    via: 'poll' as const,
    recorded: BASE + recorded,
    revision,
    backfill: backfill !== 'no',
  }
  const date = backfill === 'dated' ? text(at).slice(0, 10) : undefined
  const event = type === 'stream.gap' ? gapOf(envelope, gap) : withData(envelope, type, date)
  fieldsOf.set(event, fields)
  return event
}

const CANCELLED = cancelledEvent(
  'm',
  {
    type: 'event_stream',
    monitor_id: 'm',
    status: 'cancelled',
    frequency: '1h',
    processor: 'lite',
    created_at: '',
    settings: { query: 'q' },
  },
  'poll',
  BASE,
).data

type Rest = Omit<RuleInput, 'type' | 'data' | 'cause' | 'cursor'>

function gapOf(rest: Rest, gap: Sample['gap']): RuleInput {
  const { from, to } = gap ?? { from: null, to: null }
  const textOf = (at: number | null) => (at === null ? null : text(at))
  const data = { from: textOf(from), to: textOf(to), reason: 'expired' }
  return { ...rest, type: 'stream.gap', time: null, data }
}

function withData(rest: Rest, type: RuleInput['type'], date: string | undefined): RuleInput {
  if (type === 'source.live') return { ...rest, type, data: { lost: null } }
  if (type === 'source.lost') return { ...rest, type, data: { message: 'refused' } }
  if (type === 'monitor.cancelled') return { ...rest, type, data: CANCELLED }
  if (type === 'log.gap') return { ...rest, type, data: { from: '1', to: '2' } }
  if (type !== 'task_run.state') return { ...rest, type: 'unknown', data: { event_date: date } }
  const run = {
    run_id: rest.id,
    status: 'completed' as const,
    is_active: false,
    processor: 'base',
    created_at: rest.received,
    modified_at: rest.received,
  }
  return { ...rest, type, data: { run } }
}

/** A rule for each key: so many events within a time, in ms. */
export function countRule(over: number, gte: number): PlainRule {
  return {
    when: { bit: 0 },
    windows: [{ kind: 'count', when: null, over, gte }],
    keyedBy: 'field',
    isPerEvent: false,
    reads: 'events',
    resolveWhen: null,
    after: 0,
    for: 0,
    keepFiringFor: 0,
    lateness: 0,
    backfill: 'ignore',
  }
}
