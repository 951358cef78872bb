import { Validator } from '@cfworker/json-schema'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { extractiveProcessor } from '../../../src/service/processor/extractive.ts'
import type { Processor } from '../../../src/service/processor/processor.ts'
import { validating } from '../../../src/service/processor/validating.ts'
import { corpusOf } from '../corpus/folder.ts'
import { isolatedWork } from '../isolated/isolated-work.ts'

type Schema = Record<string, unknown>

const FILES = {
  'rxjs/README.md': `# rxjs

Reactive Extensions Library for JavaScript. Its licence is Apache-2.0, and its version is 7.8.2.

## Features

- typed observables since 2019-05-01
- 12 schedulers, and 4 of them for tests

Write to team@example.org or see https://example.org/rxjs. It supports TypeScript out of the box.
`,
}

const names = fc.constantFrom(
  'licence',
  'version',
  'features',
  'schedulers',
  'supports typescript',
  'zeppelin',
)
const small = fc.integer({ min: 0, max: 4 })
const scalar = fc.oneof(
  fc.constantFrom('Apache-2.0', 'MIT', '', 'typed'),
  fc.integer({ max: 20 }),
  fc.boolean(),
  fc.constant(null),
)

/** Any keywords together, so that many schemas are contradictions. */
const { schema } = fc.letrec<{ schema: Schema; object: Schema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.record<Schema>(
      {
        type: fc.constantFrom(
          'string',
          'number',
          'integer',
          'boolean',
          'null',
          'array',
          ['string', 'null'],
          ['integer', 'string'],
        ),
        enum: fc.uniqueArray(scalar, { minLength: 1, maxLength: 3 }),
        const: scalar,
        format: fc.constantFrom('date', 'date-time', 'email', 'uri', 'uuid', 'time', 'ipv4', 'hostname'),
        pattern: fc.constantFrom('^[A-Z]', '^\\d+(\\.\\d+)*$', 'e'),
        minLength: small,
        maxLength: fc.integer({ min: 0, max: 60 }),
        minimum: small,
        exclusiveMaximum: fc.integer({ min: 3, max: 30 }),
        multipleOf: fc.constantFrom(1, 2, 0.5),
        minItems: fc.integer({ max: 2, min: 0 }),
        maxItems: small,
        description: fc.constantFrom('licence', 'number of schedulers', 'when'),
      },
      { requiredKeys: [] },
    ),
    fc.record<Schema>(
      { type: fc.constant('array'), items: tie('schema'), minItems: small, uniqueItems: fc.boolean() },
      { requiredKeys: ['type'] },
    ),
    fc.constantFrom({ $ref: '#/$defs/a' }, { $ref: '#/$defs/b' }, { $ref: '#' }),
    ...['allOf', 'anyOf', 'oneOf'].map((keyword) =>
      fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((parts) => ({ [keyword]: parts })),
    ),
    tie('schema').map((inner) => ({ not: inner })),
    tie('object'),
  ),
  object: fc
    .record(
      {
        properties: fc.dictionary(names, tie('schema'), { maxKeys: 3 }),
        required: fc.uniqueArray(names, { maxLength: 2 }),
        additionalProperties: fc.oneof(fc.boolean(), tie('schema')),
        minProperties: small,
        if: tie('schema'),
        else: tie('schema'),
      },
      { requiredKeys: ['properties'] },
    )
    .map((rest): Schema => Object.assign(rest, { type: 'object' })),
}))

const root = fc
  .record({ schema: schema, a: schema, b: schema, properties: fc.dictionary(names, schema, { maxKeys: 3 }) })
  .map(({ schema: more, a, b, properties }): Schema =>
    Object.assign({}, more, { type: 'object', properties, $defs: { a, b } }),
  )

const isolated = isolatedWork()

type Outcome = 'refused' | 'failed' | 'valid'

/** Executes a run with a schema. Throws if its content is not valid, or if a refusal or failure has no reason. */
async function outcomeOf(processor: Processor, json_schema: Schema): Promise<Outcome> {
  const issues = await isolated.checkSchema(json_schema)
  if (issues.length > 0) {
    if (issues.every(({ message }) => message !== '')) return 'refused'
    throw new Error('a schema is refused without a reason')
  }
  const output_schema = { type: 'json' as const, json_schema }
  const task = {
    run_id: 'trun_1',
    input: { input: 'rxjs', task_spec: { output_schema } },
    context: [],
    report() {},
  }
  const result = await processor.run(task, new AbortController().signal).catch((error: unknown) => {
    if (error instanceof Error && REASON.test(error.message)) return undefined
    throw error
  })
  if (result === undefined) return 'failed'
  const { content } = result.output
  const { valid, errors } = independently(json_schema, content)
  if (valid) return 'valid'
  throw new Error(`${JSON.stringify(content)} does not satisfy its schema: ${JSON.stringify(errors)}`)
}

/** The verdict of another validator, which reads an `if` without `then` and `else` too, even if that has no end. */
function independently(json_schema: Schema, content: unknown) {
  try {
    return new Validator(json_schema, '2020-12').validate(content)
  } catch (error) {
    if (error instanceof RangeError) return { valid: true, errors: [] }
    throw error
  }
}

const REASON =
  /^The (documents do not say what the output schema requires|answer does not satisfy the output schema)\. .+: .+/

describe('the content of an answer', () => {
  it(
    'satisfies its schema, by an independent validator, or the run fails with a reason',
    { timeout: 120_000 },
    async () => {
      const processor = validating(extractiveProcessor(await corpusOf(FILES), isolated), isolated)
      const outcomes = new Set<Outcome>()
      await fc.assert(
        fc.asyncProperty(root, async (json_schema) => {
          outcomes.add(await outcomeOf(processor, json_schema))
        }),
        { numRuns: 80 },
      )
      // The schemas are not all of one sort.
      expect([outcomes.has('valid'), outcomes.has('failed')]).toEqual([true, true])
    },
  )
})
