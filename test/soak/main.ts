/**
 * Kills what writes and reads a log while its service fails: `npm run soak -- --events 20000 --kills 30 --seed 1 --json`.
 * With `--log nats`, workers that share a log on NATS, and its server: `npm run soak -- --log nats --events 20000 --seed 1 --json`.
 *
 * The last line is the result, see `SoakResult` and `NatsSoakResult`. Exits with 1 and the reasons when a guarantee is broken or a
 * part of the plan did not happen.
 */
import { parseArgs } from 'node:util'
import { TRANSACTIONS } from './messages.ts'
import { KILLS_PER_ROUND, TAKEOVERS } from './plan.ts'
import { mutantOf } from './mutants.ts'
import { natsComplaints } from './nats/complaints.ts'
import { soakNats } from './nats/soak.ts'
import { soak } from './soak.ts'
import type { SoakResult } from './soak.ts'

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '20000' },
    kills: { type: 'string' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
    log: { type: 'string', default: 'sqlite' },
    // For `--log nats` alone.
    workers: { type: 'string', default: '4' },
    stops: { type: 'string', default: '5' },
    'server-kills': { type: 'string', default: '3' },
    lease: { type: 'string', default: '2000' },
    mutant: { type: 'string' },
  },
})
const onStep = (text: string) => process.stderr.write(`${text}\n`)
const { outcome, complaints } = values.log === 'nats' ? await onNats() : await inFile()
for (const complaint of complaints) {
  process.stderr.write(`soak: ${complaint}\n`)
  process.exitCode = 1
}
if (values.json) process.stdout.write(`${JSON.stringify({ soak: outcome })}\n`)
else
  for (const [name, value] of Object.entries(outcome))
    process.stdout.write(`${name.padEnd(16)} ${JSON.stringify(value)}\n`)

async function inFile() {
  const kills = Number(values.kills ?? 30)
  const result = await soak({ events: Number(values.events), kills, seed: Number(values.seed), onStep })
  return { outcome: result, complaints: complaintsAbout(result, kills) }
}

async function onNats() {
  const options = {
    events: Number(values.events),
    workers: Number(values.workers),
    kills: Number(values.kills ?? 20),
    stops: Number(values.stops),
    serverKills: Number(values['server-kills']),
    faultRounds: Math.max(1, Math.round(Number(values.events) / 10_000)),
    groups: 10,
    monitors: 10,
    lease: Number(values.lease),
    partitions: 16,
    seed: Number(values.seed),
    mutant: values.mutant === undefined ? undefined : mutantOf(values.mutant),
    onStep,
  }
  const { result } = await soakNats(options)
  return { outcome: result, complaints: natsComplaints(result, options) }
}

function complaintsAbout(soaked: SoakResult, kills: number): string[] {
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
