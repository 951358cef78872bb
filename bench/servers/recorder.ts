/** Records a group into a file, in a process of its own: `recorder.ts {service} {group} {file}`. It serves nothing. */
import { createServer } from 'node:http'
import { createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { listen } from '../server.ts'

const [baseUrl = '', group = '', file = ''] = process.argv.slice(2)
const log = await openLog(sqliteStore(file))
log.record({ client: createClient({ baseUrl, apiKey: 'none' }), taskGroups: [group], tick: Infinity })
listen(createServer())
