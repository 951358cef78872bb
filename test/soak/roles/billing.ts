/** Consumes at least once: a handler that takes its time, several at once. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isCounted } from '../facts.ts'
import { openEffects } from '../open-effects.ts'
import { runRole } from './role.ts'

await runRole((log, settings) => {
  const { concurrency, slowest } = settings
  const database = openEffects(settings.folder, 'billing')
  const call = database.prepare('INSERT INTO calls (source, id, revision) VALUES (?, ?, ?)')
  const effect = database.prepare('INSERT INTO effects (source, id, revision) VALUES (?, ?, ?)')
  const job = log.consume(
    'billing',
    { where: ({ type }) => isCounted(type), concurrency },
    async ({ source, id, revision }) => {
      call.run(source, id, revision)
      await sleep(digit(id) % 16 === 0 ? slowest : (digit(id) % 8) * 4)
      effect.run(source, id, revision)
    },
  )
  return { failed: job.done, stop: () => job.stop() }
})

/** Decides, by the event, so that a run can be repeated: several are in flight at once and end in another order than they began. */
function digit(id: string): number {
  return id.codePointAt(id.length - 12) ?? 0
}
