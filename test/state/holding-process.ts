/** Holds the checkpoint or the inbox in a file until it is killed. */
import { sqliteCheckpointStore, sqliteInbox } from '../../src/state/sqlite.ts'

const [what, file = ''] = process.argv.slice(2)
if (what === 'checkpoint') sqliteCheckpointStore(file).load()
else sqliteInbox(file)
process.stdout.write('held\n')
setInterval(() => {}, 60_000)
