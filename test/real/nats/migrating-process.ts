/** Copies a log into another one, and kills itself once some entries are there. */
import { migrateLog } from '../../../src/log/copy/migrate.ts'
import { natsStore } from '../../../src/log/nats/index.ts'
import { sqliteStore } from '../../../src/log/sqlite/index.ts'
import type { LogStore } from '../../../src/log/store/contract.ts'

/** What it is started with: each a file, or the name of a log on the server. */
export interface MigratingSettings {
  readonly servers: string
  readonly from: { readonly file: string } | { readonly name: string }
  readonly to: { readonly file: string } | { readonly name: string }
}

const settings: MigratingSettings = JSON.parse(process.argv[2] ?? '')

function open(place: MigratingSettings['from']): LogStore {
  if ('file' in place) return sqliteStore(place.file)
  return natsStore({ servers: settings.servers, name: place.name, lease: 1_000 })
}

await migrateLog(open(settings.from), open(settings.to), {
  onProgress(copied) {
    if (copied > 0) process.kill(process.pid, 'SIGKILL')
  },
})
