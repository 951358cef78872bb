import { z } from 'zod'
import { APP_EVENT_TYPE } from '../../protocol/app-event-type.ts'
import type { WindowSettings } from '../compiled-rule.ts'
import type { RuleEventType } from '../rule.ts'
import { DURATION_PATTERN, MAX_DURATION } from '../../protocol/duration.ts'
import { isEventType, RULE_EVENT_TYPES } from './event-types.ts'

/** The most rules of a file. */
export const MAX_RULES = 5_000
/** The longest CEL text, in characters. */
const MAX_CEL = 4_000
/** The longest text of a label or an annotation, in characters. */
const MAX_LABEL = 1_000
const MAX_ANNOTATION = 10_000
/** Maximum number of events or values that a window remembers, and so of a rule's setting. */
export const MAX_EVENTS = 5_000
/** The most different values that a window remembers. */
const MAX_VALUES = 1_000
const MAX_FILE_STEPS = 10
/** The most types of events that a rule reads. */
const MAX_TYPES = 50

/** A name of a label in Prometheus and Alertmanager. Names that begin with `__` are reserved by them. */
const LABEL_NAME = /^(?!__)[A-Za-z_][A-Za-z0-9_]{0,99}$/
const RULE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/

// The message of each schema completes the sentences "x must be …" and "x is missing: write …".

function text(expected: string, max: number, description: string) {
  return z
    .string({ error: expected })
    .min(1, { error: expected })
    .max(max, { error: `${expected} of at most ${max} characters` })
    .meta({ description })
}

const cel = (description: string) => text('a CEL expression as text', MAX_CEL, description)

const DURATION_EXPECTED = 'a time span such as 30s, 10m, 1h30m or 2d'

function duration(least: 0 | 1, description: string) {
  const error = DURATION_EXPECTED
  const ms = z.number({ error }).int({ error }).min(least, { error }).max(MAX_DURATION, { error })
  return z
    .union([z.string({ error }).regex(DURATION_PATTERN, { error }), ms], { error })
    .meta({ description: `${description} A time span such as 30s, 10m, 1h30m or 2d.` })
}

function whole(least: number, most: number, description: string) {
  const error = `a whole number from ${least} to ${most}`
  return z.number({ error }).int({ error }).min(least, { error }).max(most, { error }).meta({ description })
}

function atLeast(least: number, description: string) {
  const error = `a number of at least ${least}`
  return z
    .number({ error })
    .min(least, { error })
    .max(Number.MAX_SAFE_INTEGER, { error })
    .meta({ description })
}

function anyNumber(description: string) {
  return z.number({ error: 'a number' }).meta({ description })
}

function percent(description: string) {
  const error = 'a number from 0 to 100'
  return z.number({ error }).min(0, { error }).max(100, { error }).meta({ description })
}

function list<Item extends z.ZodType>(item: Item, expected: string, most: number, description: string) {
  const error = `a list of ${expected}, at least one and at most ${most}`
  return z.array(item, { error }).min(1, { error }).max(most, { error }).meta({ description })
}

function record(value: z.ZodString, error: string, description: string) {
  const name = z.string().regex(LABEL_NAME, {
    error: 'a letter or _, then letters, digits and _, at most 100, and it does not begin with __',
  })
  return z.record(name, value, { error }).meta({ description })
}

function object<Shape extends z.core.$ZodLooseShape>(shape: Shape, example: string, description: string) {
  return z.strictObject(shape, { error: `properties, such as { ${example} }` }).meta({ description })
}

const EVENT_TYPE_EXPECTED = 'a type of events, such as monitor.event_stream'

/** A type of events, also one that TypeScript does not know here. */
export const eventType = z
  .string({ error: EVENT_TYPE_EXPECTED })
  .refine(isEventType, { error: EVENT_TYPE_EXPECTED, params: { values: RULE_EVENT_TYPES } })
  .meta({
    anyOf: [{ enum: RULE_EVENT_TYPES }, { pattern: APP_EVENT_TYPE.source }],
  }) as unknown as z.ZodType<RuleEventType>

const on = (description: string) =>
  list(eventType, 'types of events, such as [monitor.event_stream]', MAX_TYPES, description)

const windowWhen = cel('Only events for which this holds.').optional()
const over = duration(1, 'The window: events of the time (now − over, now].')

/** A window over a number of each event. */
function aggregate<More extends z.core.$ZodLooseShape>(description: string, more: More, example = '') {
  return object(
    {
      when: windowWhen,
      over,
      value: cel('The number, in CEL.'),
      ...more,
      gte: anyNumber('At least that.').optional(),
      lte: anyNumber('At most that.').optional(),
    },
    `over: 1h, value: data.output.content.price, ${example}gte: 100`,
    `${description}, at least gte, at most lte, or both.`,
  ).optional()
}

const shared = {
  on: on('The types of events that the rule reads. Default: all of monitors, tasks and streams.').optional(),
  labels: record(
    text('text', MAX_LABEL, 'Text, which may have ${…} with values of key.'),
    'names and texts, such as { severity: warning }',
    'Labels of the alert. Rule and labels are its identity.',
  ).optional(),
  annotations: record(
    text(
      'text',
      MAX_ANNOTATION,
      'Text, which may have ${…} with fields of the event, key, value and labels.',
    ),
    'names and texts, such as { summary: "what happened" }',
    'Texts for people. They are no part of the identity of an alert.',
  ).optional(),
  resolve: object(
    {
      when: cel('An event of the key for which this holds ends the alert.').optional(),
      after: duration(
        1,
        'So long after the last event that matched, the alert ends. Default 1h, and 5m with per: event.',
      ).optional(),
    },
    'after: 24h',
    'What ends the alert. A rule with absence, or with a window that holds, ends by itself and has no after.',
  ).optional(),
  for: duration(0, 'How long the condition must hold before the alert fires. Default 0.').optional(),
  keep_firing_for: duration(
    0,
    'How long the alert stays after its condition has ended. Default 0.',
  ).optional(),
  lateness: duration(
    0,
    'How late an event may come. Default 0 for a rule whose order of events does not matter, otherwise 1m.',
  ).optional(),
  backfill: z
    .enum(['ignore', 'place'], { error: 'ignore or place' })
    .meta({
      description:
        'Events of a first walk into the past: ignore (default), or place by their event_date, else by their time.',
    })
    .optional(),
  enabled: z.boolean({ error: 'true or false' }).meta({ description: 'Default true.' }).optional(),
}

/** The windows of a rule. */
const windows = {
  count: object(
    { when: windowWhen, over, gte: whole(1, MAX_EVENTS, 'At least so many events.') },
    'over: 1h, gte: 3',
    'At least gte events within a time.',
  ).optional(),
  rate: object(
    {
      when: windowWhen,
      over,
      per: duration(1, 'The unit of the rate.'),
      gte: atLeast(0.000_001, 'At least so many events in each per, on average.'),
    },
    'over: 1h, per: 1m, gte: 5',
    'At least gte events in each per, on average over a time.',
  ).optional(),
  distinct: object(
    {
      when: windowWhen,
      over,
      value: cel('The value, in CEL. A list counts as its members.'),
      gte: whole(1, MAX_VALUES, 'At least so many different values.'),
    },
    'over: 1h, value: hosts(data.output), gte: 2',
    'At least gte different values within a time.',
  ).optional(),
  spike: object(
    {
      when: windowWhen,
      over,
      factor: atLeast(1, 'At least so many times the events of the window before.'),
      min: whole(1, MAX_VALUES, 'At least so many events. Default: factor, rounded up.').optional(),
    },
    'over: 1h, factor: 3',
    'More events than in the window before, by a factor.',
  ).optional(),
  sum: aggregate('The sum of a number of each event', {}),
  avg: aggregate('The average of a number of each event', {}),
  min: aggregate('The least number of all events', {}),
  max: aggregate('The greatest number of all events', {}),
  percentile: aggregate(
    'A percentile of a number of each event',
    { p: percent('Which percentile: 50 is the median.') },
    'p: 95, ',
  ),
  new: object(
    {
      when: windowWhen,
      value: cel('The value, in CEL. A list counts as its members.'),
      within: duration(1, 'How long a value is known.'),
    },
    'value: data.output.content, within: 30d',
    'A value that no event had within that time before.',
  ).optional(),
  changed: object(
    { when: windowWhen, value: cel('The value, in CEL.') },
    'value: data.output.content',
    "A value that the key's last event did not have. Its first event is no change.",
  ).optional(),
  absence: object(
    {
      on: on(
        'What counts as a report. Default: detections, snapshots and completions of monitors.',
      ).optional(),
      within: duration(1, 'How long a source may be silent.'),
      of: list(
        text(
          'the id of a monitor, or a source',
          600,
          'The id of a monitor, or a source such as /v1/tasks/groups/…',
        ),
        'ids of monitors, such as [monitor_1]',
        1_000,
        'Ids of monitors, or sources. Default: all from which something came.',
      ).optional(),
    },
    'within: 3h',
    'No report of a source within a time. Its key is the source.',
  ).optional(),
  sequence: object(
    {
      steps: list(
        cel('A step: an event for which this holds.'),
        'CEL expressions',
        MAX_FILE_STEPS,
        'Events in this order.',
      ),
      not_then: cel('No such event within the same time after the last step.').optional(),
      within: duration(1, 'The last step is at most that long after the first.'),
    },
    `steps: ["type == 'monitor.error'", "type == 'monitor.completion'"], within: 1h`,
    'Events in an order; with not_then, and no such event after them.',
  ).optional(),
} satisfies { readonly [Kind in keyof WindowSettings]: z.ZodType }

/** A rule, by its properties alone. Their combinations are checked in `check-meaning.ts`. */
export const ruleSchema = object(
  {
    alert: z
      .string({ error: 'the name of the rule, such as ErrorBurst' })
      .regex(RULE_NAME, { error: 'a name: a letter or _, then letters, digits and _, at most 100' })
      .meta({ description: 'The name, which the label alertname has. Unique in a set of rules.' }),
    when: cel(
      'Only events for which this holds, in CEL. resolve.when is asked for the others, too.',
    ).optional(),
    ...windows,
    key: record(
      cel('The value, in CEL.'),
      'names and CEL expressions, such as { monitor: source }',
      'What is watched separately: an alert for each value. Each is a label. Default: all events together.',
    ).optional(),
    per: z
      .literal('event', { error: 'event' })
      .meta({ description: 'Each event that matches is an alert of its own.' })
      .optional(),
    ...shared,
  },
  'alert: Name, when: "…"',
  'A rule. It has at most one of new, changed, absence and sequence, or any of the other windows, which must hold at the same time.',
)

export const groupDefaultsSchema = object(
  shared,
  'labels: { team: research }',
  'Settings of rules that do not have them.',
)

const groupName = text('a name', 200, 'The name of the group.')

const groupProperties = { name: groupName, defaults: groupDefaultsSchema.optional() }

/** The most groups of a file. */
const MAX_GROUPS = 1_000

const version = z
  .literal(1, { error: '1, the version of this format' })
  .meta({ description: 'The version of this format.' })

/** A rule file with rules of this schema. */
function fileSchema<Rule extends z.ZodType>(rule: Rule) {
  const rules = list(rule, 'rules', MAX_RULES, 'The rules.')
  const group = object(
    { ...groupProperties, rules },
    'name: team, rules: […]',
    "Rules that share defaults: a rule's own settings win, labels and annotations are merged.",
  )
  return object(
    {
      version,
      groups: list(group, 'groups', MAX_GROUPS, 'Groups of rules.').optional(),
      rules: rules.optional(),
    },
    'version: 1, rules: […]',
    'Alert rules of rivulet.',
  )
}

/** A rule file without its rules: these are checked one by one, so that a problem in one does not hide problems in another. */
export const outlineSchema = fileSchema(z.unknown())

/** A whole rule file. */
export const ruleFileSchema = fileSchema(ruleSchema)

/** The JSON Schema of rule files, for editors. */
export function ruleFileJsonSchema(): object {
  return { title: 'Alert rules of rivulet', ...z.toJSONSchema(ruleFileSchema) }
}
