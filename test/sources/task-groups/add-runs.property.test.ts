import * as fc from 'fast-check'
import { createClient, PartialWriteError, UncertainWriteError } from 'rivulet'
import type { AddRunsOptions, AddRunsResponse, WriteProgress } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { UnreliableGroup } from './unreliable-group.ts'
import type { Plan } from './unreliable-group.ts'
import type { Cut } from '../../support/cut-wire.ts'

// Small numbers are in the head of a request or response, large ones in a body or a later request of the connection.
const bytes = fc.oneof(fc.nat(700), fc.nat(30_000), fc.nat(200_000))
const cut: fc.Arbitrary<Cut> = fc.record({ side: fc.constantFrom('up', 'down'), bytes })
const plan: fc.Arbitrary<Plan> = fc.record({
  failures: fc.array(
    fc.record(
      {
        taken: fc.constantFrom(0, 1, 0.5, 0.01),
        status: fc.constantFrom(500, 502, 503, 504, 408),
      },
      { requiredKeys: ['taken'] },
    ),
    { maxLength: 4 },
  ),
  cuts: fc.array(fc.option(cut, { nil: undefined }), { maxLength: 6 }),
  slowness: fc.nat(2),
})
// Some fill several requests.
const count = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 990, max: 2_300 }))

interface Outcome {
  readonly inputs: readonly { readonly input: string }[]
  readonly answers: readonly AddRunsResponse[]
  readonly error: unknown
  /** The runs of the service, with their inputs. */
  readonly taken: ReadonlyMap<string, unknown>
}

/** Adds this many inputs to a group with these failures. */
async function add(wrong: Plan, size: number, options: AddRunsOptions): Promise<Outcome> {
  const group = new UnreliableGroup(wrong)
  try {
    const client = createClient({ baseUrl: await group.open(), apiKey: 'key', initialDelay: 0 })
    const inputs = Array.from({ length: size }, (_, n) => ({ input: `input ${n}` }))
    const answers: AddRunsResponse[] = []
    const error: unknown = await new Promise((resolve) => {
      client.taskGroups.addRuns('g', { inputs }, options).subscribe({
        next: (answer) => answers.push(answer),
        error: resolve,
        complete: () => resolve(undefined),
      })
    })
    const taken = new Map(group.taken.map(({ run, input }) => [run.run_id, input.input]))
    return { inputs, answers, error, taken }
  } finally {
    group.close()
  }
}

/** What the caller can conclude about each input. */
function resultOf({ inputs, answers, error }: Outcome): Omit<WriteProgress, 'answers'> {
  if (error instanceof UncertainWriteError) return error
  if (error instanceof PartialWriteError) return { added: error.added, notAdded: error.notAdded, inDoubt: [] }
  const added = answers.flatMap(({ run_ids }) => run_ids).map((run_id, index) => ({ run_id, index }))
  return { added, notAdded: error === undefined ? [] : inputs.map((_, index) => index), inDoubt: [] }
}

/** A correct service: it adds no input of a request to which it responds with 503. */
const honest = ({ failures, ...rest }: Plan): Plan => ({
  ...rest,
  failures: failures.map((failure) => (failure.status === 503 ? { ...failure, taken: 0 } : failure)),
})

const timeout = 60_000

describe('addRuns against a service that fails at any byte', () => {
  it(
    'with exactlyOnce adds every input once, and emits the run ids in the order of inputs',
    async () => {
      await fc.assert(
        fc.asyncProperty(plan.map(honest), count, async (wrong, size) => {
          const { inputs, answers, error, taken } = await add(wrong, size, {
            exactlyOnce: true,
            settleDelay: 0,
          })

          expect(error).toBeUndefined()
          expect(taken.size).toBe(size)
          expect(answers.flatMap(({ run_ids }) => run_ids.map((id) => taken.get(id)))).toEqual(
            inputs.map(({ input }) => input),
          )
        }),
        { numRuns: 60 },
      )
    },
    timeout,
  )

  it(
    'without it adds none twice, and its error lists correctly which inputs were added, were not, and are in doubt',
    async () => {
      await fc.assert(
        fc.asyncProperty(plan.map(honest), count, async (wrong, size) => {
          const outcome = await add(wrong, size, {})
          const { inputs, taken } = outcome
          const { added, notAdded, inDoubt } = resultOf(outcome)
          const there = new Set(taken.values())

          expect(there.size).toBe(taken.size)
          const indexes = [...added.map(({ index }) => index), ...notAdded, ...inDoubt]
          expect(indexes.toSorted((one, other) => one - other)).toEqual(inputs.map((_, index) => index))
          expect(added.map(({ run_id }) => taken.get(run_id))).toEqual(
            added.map(({ index }) => inputs[index]?.input),
          )
          expect(notAdded.filter((index) => there.has(inputs[index]?.input))).toEqual([])
        }),
        { numRuns: 60 },
      )
    },
    timeout,
  )
})
