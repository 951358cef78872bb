/**
 * Kills a pipeline while its service fails: `npm run soak -- --events 20000 --kills 30 --seed 1 --json`.
 *
 * The last line is the result, see `SoakResult`. Exits with 1 and the reasons when a guarantee is broken or a part of the plan did
 * not happen.
 */
import { parseArgs } from 'node:util'
import { soak } from './soak.ts'
import type { SoakResult } from './soak.ts'

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '20000' },
    kills: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
  },
})
const kills = Number(values.kills)
const result = await soak({
  events: Number(values.events),
  kills,
  seed: Number(values.seed),
  onStep: (text) => process.stderr.write(`${text}\n`),
})
for (const complaint of complaintsAbout(result)) {
  process.stderr.write(`soak: ${complaint}\n`)
  process.exitCode = 1
}
if (values.json) process.stdout.write(`${JSON.stringify({ soak: result })}\n`)
else
  for (const [name, value] of Object.entries(result))
    process.stdout.write(`${name.padEnd(16)} ${JSON.stringify(value)}\n`)

function complaintsAbout({
  lost,
  doubled_effects,
  checkpoint_ahead,
  redelivered,
  ...made
}: SoakResult): string[] {
  const bound = made.kills * made.concurrency
  const idle = Object.keys(made.faults).filter((fault) => made.faults[fault] === 0)
  return [
    ...(lost > 0 ? [`${lost} events were lost`] : []),
    ...(doubled_effects > 0 ? [`${doubled_effects} effects were doubled`] : []),
    ...(checkpoint_ahead > 0 ? [`after ${checkpoint_ahead} kills the checkpoint was ahead`] : []),
    ...(redelivered > bound ? [`${redelivered} events were handled again, more than ${bound}`] : []),
    ...(made.kills < kills ? [`only ${made.kills} of ${kills} kills took place`] : []),
    ...(idle.length > 0 ? [`never struck: ${idle.join(', ')}`] : []),
  ]
}
