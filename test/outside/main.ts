/**
 * A random test of the log from outside: `npm run outside -- --log file|nats --seed N --minutes M`.
 *
 * Processes use a log by the package's public exports alone: they record a scripted upstream, consume it, count it, and read it. They
 * are killed, suspended and given wrong clocks. An operator copies the log, puts the copy back while effects and positions elsewhere
 * stay, moves the log, and opens it by a second path. Each process reports what it sees into a journal, a line at a time. In the end, an
 * oracle compares the journals with what the upstream has sent. It shares no code with the library.
 *
 * The time is divided into rounds, each with a log and a seed of its own: `--rounds 1` and its seed play one of them again. The steps are
 * the same then, but not their timing.
 *
 * `round.ts` has the steps, `world.ts` what they act on, `process.ts` the processes, `oracle.ts` the promises. `--mutant NAME` puts a
 * defect into the library, which has to be found (`test/soak/mutants.ts`). Exits with 1 for a finding, and keeps the files of its round.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { NatsServer } from '../real/nats/server.ts'
import { checkMutant, mutantOf } from '../soak/mutants.ts'
import { playRound } from './round.ts'

const { values } = parseArgs({
  options: {
    log: { type: 'string', default: 'file' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    minutes: { type: 'string', default: '15' },
    rounds: { type: 'string', default: 'Infinity' },
    // Of a round, without its beginning and its end.
    seconds: { type: 'string', default: '20' },
    // Steps that are left out.
    without: { type: 'string', multiple: true },
    mutant: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
})
const mutant = values.mutant === undefined ? undefined : mutantOf(values.mutant)
if (mutant !== undefined) await checkMutant(mutant)
const begun = performance.now()
const total: Record<string, number> = {}
for (let round = 0; round < Number(values.rounds); round++) {
  const elapsed = (performance.now() - begun) / 1_000
  if (elapsed > Number(values.minutes) * 60) break
  const seed = Number(values.seed) + round
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-outside-'))
  const server = values.log === 'nats' ? await NatsServer.start() : undefined
  const onStep = (text: string) => values.verbose && process.stderr.write(`  ${text}\n`)
  const { findings, events, counts } = await playRound(
    { folder, seed, server, mutant, onStep },
    Number(values.seconds) * 1_000,
    values.without,
  )
  await server?.remove()
  for (const [name, count] of Object.entries({ ...counts, events })) total[name] = (total[name] ?? 0) + count
  const seconds = ((performance.now() - begun) / 1_000).toFixed(0)
  process.stderr.write(`${seconds} s: seed ${seed}, ${events} events, ${findings.length} findings\n`)
  if (findings.length > 0) {
    for (const finding of findings.slice(0, 20)) process.stderr.write(`outside: ${finding}\n`)
    process.stderr.write(
      `outside: --log ${values.log} --seed ${seed} --rounds 1 plays it again; its files are in ${folder}\n`,
    )
    process.exitCode = 1
    break
  }
  await rm(folder, { recursive: true })
}
process.stdout.write(`${JSON.stringify({ outside: total })}\n`)
