/**
 * Kills what writes and reads a log while its service fails: `npm run soak -- --events 20000 --kills 30 --seed 1 --json`.
 *
 * The last line is the result, see `SoakResult`. Exits with 1 and the reasons when a guarantee is broken or a part of the plan did
 * not happen.
 */
import { parseArgs } from 'node:util'
import { TRANSACTIONS } from './messages.ts'
import { KILLS_PER_ROUND, TAKEOVERS } from './plan.ts'
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

function complaintsAbout(soaked: SoakResult): string[] {
  const bound = (soaked.kills + TAKEOVERS) * soaked.concurrency
  const idle = Object.keys(soaked.faults).filter((fault) => soaked.faults[fault] === 0)
  // With fewer kills, not every kind has its turn.
  const unstruck = kills < KILLS_PER_ROUND ? [] : TRANSACTIONS.filter((kind) => !soaked.kills_within[kind])
  return [
    ...(soaked.lost > 0 ? [`${soaked.lost} events were lost`] : []),
    ...(soaked.doubled_effects > 0 ? [`${soaked.doubled_effects} effects were doubled`] : []),
    ...(soaked.recorded_twice > 0 ? [`${soaked.recorded_twice} entries were recorded twice`] : []),
    ...(soaked.process_diverged > 0
      ? [`the process has ${soaked.process_diverged} states or outputs that are not those of its entries`]
      : []),
    ...(soaked.cursor_ahead > 0 ? [`cursors were ahead of ${soaked.cursor_ahead} effects`] : []),
    ...(soaked.redelivered > bound ? [`${soaked.redelivered} entries came again, more than ${bound}`] : []),
    ...(soaked.fenced < TAKEOVERS ? [`only ${soaked.fenced} of ${TAKEOVERS} processes were fenced`] : []),
    ...(soaked.revisions === 0 ? ['no entry was more complete than an earlier one'] : []),
    ...(soaked.trimmed === 0 ? ['no entry was deleted'] : []),
    ...(soaked.kills < kills ? [`only ${soaked.kills} of ${kills} kills took place`] : []),
    ...(idle.length > 0 ? [`never struck: ${idle.join(', ')}`] : []),
    ...(unstruck.length > 0 ? [`no kill struck within: ${unstruck.join(', ')}`] : []),
  ]
}
