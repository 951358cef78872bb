import { z } from 'zod'
import { DURATION_PATTERN } from '../../protocol/duration.ts'
import { eventType } from '../rule-file/schema.ts'

/** The most tests of a file, and events and expectations of a test as they are written. */
const MAX_LISTED = 5_000
/** How often an event can be repeated. */
const MAX_TIMES = 100_000

// The message of each schema completes the sentences "x must be …" and "x is missing: write …".

function object<Shape extends z.core.$ZodLooseShape>(shape: Shape, example: string, description: string) {
  return z.strictObject(shape, { error: `properties, such as { ${example} }` }).meta({ description })
}

function text(expected: string, description: string) {
  return z
    .string({ error: expected })
    .min(1, { error: expected })
    .max(1_000, { error: `${expected} of at most 1000 characters` })
    .meta({ description })
}

function list<Item extends z.ZodType>(item: Item, expected: string, description: string) {
  const error = `a list of ${expected}, at least one and at most ${MAX_LISTED}`
  return z.array(item, { error }).min(1, { error }).max(MAX_LISTED, { error }).meta({ description })
}

/** A time in RFC 3339 with its zone. */
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/

function time(description: string) {
  const error = 'a time since start such as 10m or 1h30m, or one such as 2026-01-01T12:00:00Z'
  return z
    .union([z.string().regex(DURATION_PATTERN), z.string().regex(INSTANT), z.literal(0)], { error })
    .meta({ description: `${description} A time since start, such as 10m, or one in RFC 3339.` })
}

function duration(description: string) {
  const error = 'a time span such as 30s, 10m, 1h30m or 2d'
  return z.string({ error }).regex(DURATION_PATTERN, { error }).meta({ description })
}

const yes = (description: string) => z.literal(true, { error: 'true' }).meta({ description })
const flag = (description: string) => z.boolean({ error: 'true or false' }).meta({ description })

const scalar = z.union([z.string(), z.number(), z.boolean()], { error: 'text, a number, true or false' })
const values = (description: string) =>
  z.record(z.string(), scalar, { error: 'names and values, such as { company: Acme }' }).meta({ description })

const content = z
  .union([z.string(), z.record(z.string(), z.json())], {
    error: 'text, or fields such as { company: Acme }',
  })
  .meta({ description: 'The content of an output: text, or fields.' })

function byField<Value extends z.ZodType>(value: Value, expected: string, description: string) {
  return z.union([value, z.record(z.string(), value)], { error: expected }).meta({ description })
}

const texts = z.array(z.string().max(10_000)).max(1_000)

/** The kinds of events. */
export const KINDS = [
  'event_stream',
  'snapshot',
  'completion',
  'error',
  'cancelled',
  'state',
  'status',
  'progress',
  'message',
  'candidate',
  'gap',
  'live',
  'lost',
  'type',
] as const

/** The fields that name the source of an event: at most one of these. */
export const SUBJECTS = ['monitor', 'group', 'run', 'find_all', 'source'] as const

const eventSchema = object(
  {
    at: time('When it happens.'),
    every: duration('Repeats it at this interval; with times.').optional(),
    times: z
      .number({ error: `a whole number from 1 to ${MAX_TIMES}` })
      .int({ error: `a whole number from 1 to ${MAX_TIMES}` })
      .min(1, { error: `a whole number from 1 to ${MAX_TIMES}` })
      .max(MAX_TIMES, { error: `a whole number from 1 to ${MAX_TIMES}` })
      .meta({ description: 'How often it happens, the first time included.' })
      .optional(),

    monitor: text('the id of a monitor', 'The id of its monitor. Default mon_1.').optional(),
    group: text('the id of a task group', 'The id of its task group. Default tgrp_1.').optional(),
    run: text('the id of a run', 'The id of its run. Default trun_1.').optional(),
    find_all: text('the id of a FindAll run', 'The id of its FindAll run. Default findall_1.').optional(),
    source: text('a source such as /v1/monitors/mon_1', 'Its source, as a path.').optional(),

    event_stream: content.describe('A detection of a monitor: the content of its output.').optional(),
    snapshot: content.describe('A change of a snapshot monitor: the content that changed.').optional(),
    previous: content.describe('Of a snapshot: the whole content before.').optional(),
    completion: yes('A monitor has searched and found nothing.').optional(),
    error: text(
      'the message of the error',
      'A failed execution of a monitor, or an error of a group.',
    ).optional(),
    cancelled: yes('The monitor was cancelled.').optional(),
    state: text('the status of a run, such as completed', 'A run has ended, with this status.').optional(),
    input: content.describe('Of a run: what was asked.').optional(),
    output: content
      .describe('Of a run: the content of its output. Of a candidate: values by condition or enrichment.')
      .optional(),
    metadata: values(
      'The metadata of a run and its input, of a FindAll run, or of a cancelled monitor (as texts).',
    ).optional(),
    status: z
      .record(z.string(), z.json(), { error: 'fields such as { is_active: true }' })
      .meta({ description: 'A status of a task group; with find_all, of a FindAll run.' })
      .optional(),
    progress: z
      .number({ error: 'a number from 0 to 100' })
      .min(0, { error: 'a number from 0 to 100' })
      .max(100, { error: 'a number from 0 to 100' })
      .meta({ description: 'The progress meter of a run (task_run.progress_stats).' })
      .optional(),
    message: text('a text', 'A message of the trace of a run (task_run.progress_msg).').optional(),
    candidate: z
      .enum(['generated', 'matched', 'unmatched', 'discarded', 'enriched'], {
        error: 'generated, matched, unmatched, discarded or enriched',
      })
      .meta({ description: 'A candidate of a FindAll run has changed in this way.' })
      .optional(),
    name: text('a name', 'Of a candidate: its name. Default Acme.').optional(),
    gap: text(
      'the reason of the gap',
      'Events of the source are missing (stream.gap), with this reason.',
    ).optional(),
    live: yes('The source was reached (source.live).').optional(),
    lost: text(
      'why the source was lost',
      'The source cannot be reached (source.lost), with this message.',
    ).optional(),
    type: eventType
      .meta({ description: 'The type of an event whose data is written as on the wire.' })
      .optional(),
    data: z.json().describe('With type: the data as on the wire.').optional(),

    citations: byField(
      texts,
      'a list of addresses, or one for each field: { company: [https://a.example/x] }',
      'Addresses that the output cites: for all its fields, or by field.',
    ).optional(),
    confidence: byField(
      z.string(),
      'text such as high, or one for each field: { company: high }',
      'The confidence of the output: of all its fields, or by field.',
    ).optional(),
    excerpts: byField(
      texts,
      'a list of texts, or one for each field: { company: ["a passage"] }',
      'Passages of the cited pages: for all fields, or by field.',
    ).optional(),

    id: text('an id', 'Its id. Default: event_1 and so on, by its place in the list.').optional(),
    event_date: text('a date such as 2026-01-31', 'The event_date of a detection or a snapshot.').optional(),
    recorded: time('When the log records it, where that is later.').optional(),
    backfill: flag('Whether it comes from a first walk into the past.').optional(),
    revision: z
      .number({ error: 'a whole number of at least 1' })
      .int({ error: 'a whole number of at least 1' })
      .min(1, { error: 'a whole number of at least 1' })
      .meta({ description: 'The revision of the event, from 1.' })
      .optional(),
  },
  'at: 10m, monitor: mon_1, completion: true',
  'An event, or several at an interval.',
)

/** The kinds of expectations. */
export const EXPECTED = [
  'firing',
  'resolved',
  'unknown',
  'late',
  'active',
  'inactive',
  'none',
  'never',
] as const

const ruleName = (description: string) => text('the name of a rule', description).optional()

const expectationSchema = object(
  {
    at: time('When.').optional(),
    firing: ruleName('The alert of this rule fires.'),
    resolved: ruleName('The alert of this rule ends.'),
    unknown: ruleName('An alert.unknown of this rule.'),
    late: ruleName('Events were too late for this rule. They are reported a minute after the first of them.'),
    active: ruleName('The alert of this rule is firing at this time.'),
    inactive: ruleName('The alert of this rule is not firing at this time.'),
    none: yes('No alert is firing at this time.').optional(),
    never: ruleName('The alert of this rule does not fire during the test.'),
    key: values('Values of the key.').optional(),
    labels: values('Labels.').optional(),
    annotations: values('Annotations.').optional(),
    value: z
      .union([z.number(), z.string(), z.null()], { error: 'a number, text or null' })
      .meta({ description: 'What the condition has measured.' })
      .optional(),
    since: time('When the condition began to hold.').optional(),
    reason: text('a reason such as condition', 'Why it ended, or why it is unknown.').optional(),
    events: z
      .array(z.string(), { error: 'a list of ids of events' })
      .meta({ description: 'Ids of events that had a part.' })
      .optional(),
  },
  'at: 10m, firing: ErrorBurst',
  'What is expected: a transition, or the state at a time.',
)

const testProperties = {
  name: text('what the test shows, as text', 'What the test shows.'),
  start: z
    .string({ error: 'a time such as 2026-01-01T00:00:00Z' })
    .regex(INSTANT, { error: 'a time such as 2026-01-01T00:00:00Z' })
    .meta({ description: 'When the test begins, in RFC 3339. Default 2026-01-01T00:00:00Z.' })
    .optional(),
  until: time('Until when time passes. Default: the last event or expectation.').optional(),
  exact: flag(
    'Whether nothing else may happen, and objects such as labels must be complete. Default false.',
  ).optional(),
}

function fileSchema<Test extends z.ZodType>(test: Test) {
  return object(
    {
      rules: list(
        text(
          'the path of a rule file',
          'The path of a rule file, from the folder of this file, or a pattern.',
        ),
        'paths of rule files',
        'The rule files.',
      ),
      tests: list(test, 'tests', 'The tests.'),
    },
    'rules: [rules.yaml], tests: […]',
    'Tests of alert rules of rivulet.',
  )
}

export const testSchema = object(
  {
    ...testProperties,
    events: list(eventSchema, 'events', 'What happens, in any order.').optional(),
    expect: list(expectationSchema, 'expectations', 'What is expected, in any order.'),
  },
  'name: fires, events: […], expect: […]',
  'A test.',
)

/** A file without its tests: these are checked one by one, so that a problem in one does not hide problems in another. */
export const outlineSchema = fileSchema(z.unknown())

/** A test as it is written. */
export type GivenTest = z.infer<typeof testSchema>
/** An event as it is written. */
export type GivenEvent = z.infer<typeof eventSchema>
/** An expectation as it is written. */
export type GivenExpectation = z.infer<typeof expectationSchema>

/** The JSON Schema of test files, for editors. */
export function ruleTestsJsonSchema(): object {
  return { title: 'Tests of alert rules of rivulet', ...z.toJSONSchema(fileSchema(testSchema)) }
}
