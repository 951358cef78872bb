import { celEnv, parse, plan } from '@bufbuild/cel'
import type { CelInput } from '@bufbuild/cel'
import { monitorEvent } from '../../src/protocol/event.ts'
import { compileExpression, viewOf } from '../../src/rules/cel/index.ts'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { alternately } from '../rounds.ts'

const EVALUATIONS = 20_000

const CONDITION = "data.output.content.company == 'Acme'"

const WIRE = {
  event_type: 'event_stream',
  event_id: 'e1',
  event_group_id: 'g1',
  event_date: '2026-01-02',
  output: { type: 'json', content: { company: 'Acme', count: 3 }, basis: [] },
}

/**
 * Evaluations of one condition for each second of CPU time, each for another event, against `@bufbuild/cel` as its documentation
 * shows it: with the event as the variables.
 */
export const measure: Measure = async () => {
  const event = monitorEvent('mon_1', WIRE, 'poll')
  const condition = compileExpression(CONDITION)
  const planned = plan(celEnv(), parse(CONDITION))
  // Its declaration of an input has no readonly fields.
  const data = WIRE as unknown as CelInput
  const { ratio, ours, theirs, quartiles, rounds } = await alternately(
    () => perCpuSecond(() => condition.evaluate(viewOf(event))),
    () => perCpuSecond(() => planned({ data })),
  )
  return [
    result(
      'condition',
      ratio,
      { atLeast: 2 },
      { ours, theirs, quartiles, rounds, unit: 'evaluations/s of CPU' },
    ),
  ]
}

function perCpuSecond(evaluate: () => unknown): number {
  const before = process.cpuUsage()
  for (let index = 0; index < EVALUATIONS; index++) evaluate()
  const { user, system } = process.cpuUsage(before)
  return (EVALUATIONS / (user + system)) * 1_000_000
}
