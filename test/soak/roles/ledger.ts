/** Consumes exactly once, into a database of its own. */
import { exactlyOnce } from 'rivulet/log/sqlite'
import { isCounted } from '../facts.ts'
import { openEffects } from '../open-effects.ts'
import { runRole } from './role.ts'

await runRole((log, settings) => {
  const database = openEffects(settings.folder, 'ledger')
  const effect = database.prepare('INSERT INTO effects (source, id, revision) VALUES (?, ?, ?)')
  const job = log.consume(
    'ledger',
    { where: ({ type }) => isCounted(type) },
    exactlyOnce(database, { effect: ({ source, id, revision }) => void effect.run(source, id, revision) }),
  )
  return { failed: job.done, stop: () => job.stop() }
})
