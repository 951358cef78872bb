import { Validator } from '@cfworker/json-schema'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { extractiveProcessor } from '../../../src/service/processor/extractive.ts'
import { compileSchema } from '../../../src/service/processor/json-schema.ts'
import { validating } from '../../../src/service/processor/validating.ts'
import { corpusOf } from '../corpus/folder.ts'

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
    .map((rest): Schema => ({ type: 'object', ...rest })),
}))

const root = fc
  .record({ schema: schema, a: schema, b: schema, properties: fc.dictionary(names, schema, { maxKeys: 3 }) })
  .map(({ schema: more, a, b, properties }): Schema => ({
    ...more,
    type: 'object',
    properties,
    $defs: { a, b },
  }))

describe('the content of an answer', () => {
  it(
    'satisfies its schema, by an independent validator, or the run fails with a reason',
    { timeout: 120_000 },
    async () => {
      const processor = validating(extractiveProcessor(await corpusOf(FILES)))
      const outcomes = { valid: 0, failed: 0, refused: 0, answered: 0 }
      await fc.assert(
        fc.asyncProperty(root, async (json_schema) => {
          const { issues } = compileSchema(json_schema)
          if (issues.length > 0) {
            outcomes.refused += 1
            expect(issues[0]?.message).not.toBe('')
            return
          }
          const task = {
            run_id: 'trun_1',
            input: { input: 'rxjs', task_spec: { output_schema: { type: 'json' as const, json_schema } } },
            context: [],
            report() {},
          }
          const result = await processor
            .run(task, new AbortController().signal)
            .catch((error: unknown) => error)
          if (result instanceof Error) {
            outcomes.failed += 1
            expect(result.message).toMatch(
              /^The (output schema cannot be satisfied|answer does not satisfy the output schema)\. .+: .+/,
            )
            return
          }
          const { output } = result as { output: { content: Record<string, unknown> } }
          const { valid, errors } = new Validator(json_schema, '2020-12').validate(output.content)
          outcomes.valid += 1
          if (Object.keys(output.content).length > 0) outcomes.answered += 1
          expect([valid, errors, output.content]).toEqual([true, [], output.content])
        }),
        { numRuns: 80 },
      )
      // The schemas are not all of one sort.
      expect(Math.min(outcomes.valid, outcomes.failed, outcomes.answered)).toBeGreaterThan(0)
    },
  )
})
