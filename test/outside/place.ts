import { copyFile, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { NatsServer } from '../real/nats/server.ts'

/** Where a log is, and how an operator copies it and puts the copy back: without its programs, and without the library. */
export interface Place {
  /** As the command takes it. */
  readonly address: string
  /** Copies the log, which no process has open. What is returned puts the copy in its place. */
  copy(): Promise<() => Promise<void>>
}

/** A log in a file. */
export function filePlace(folder: string, name: string): Place {
  // The file and its write-ahead log. SQLite makes the index of that again.
  const stored = async () => {
    const names = await readdir(folder)
    return names.filter((each) => each.startsWith(`${name}.db`) && !each.includes('-lock'))
  }
  return {
    address: join(folder, `${name}.db`),
    copy: async () => {
      const copied = await stored()
      for (const each of copied) await copyFile(join(folder, each), join(folder, `copy-of-${each}`))
      return async () => {
        for (const each of await stored()) await rm(join(folder, each))
        for (const each of copied) await copyFile(join(folder, `copy-of-${each}`), join(folder, each))
      }
    },
  }
}

/** A log on a server. */
export function natsPlace(server: NatsServer, name: string): Place {
  return { address: `${server.url}/${name}`, copy: () => server.backup() }
}
