import { LogClosedError, LogInUseError } from '../../errors.ts'
import type { CopySource, CopyStore, CopyTarget } from '../../store/copy-store.ts'
import { logName } from '../server/connection.ts'
import { NatsCopySource } from './copy-source.ts'
import { NatsCopyTarget } from './copy-target.ts'
import { DeadLetterCopies } from '../journal/dead-letter-copies.ts'
import { ChunkedPayloads } from '../server/chunked-payloads.ts'
import { OpenNatsLog } from '../open-log.ts'
import type { OpenNatsLogSettings } from '../open-log.ts'
import { serverError } from '../server/server-error.ts'

/** A log on a server, to be copied as a whole or made as a copy. */
export class NatsCopying implements CopyStore {
  readonly #settings: OpenNatsLogSettings

  constructor(settings: OpenNatsLogSettings) {
    this.#settings = settings
  }

  /** Opens the log as a source. Nothing keeps others from writing meanwhile, but their writes are noticed. */
  async source(): Promise<CopySource> {
    return this.#call(async () => {
      const closed = new AbortController()
      const log = await OpenNatsLog.open({ ...this.#settings, create: false }, closed.signal)
      const close = async () => {
        closed.abort(new LogClosedError(logName(this.#settings.log)))
        await log.close()
      }
      try {
        const { connection, positions, inbox } = log
        const { journals, claims } = log.journals
        const ownerOf = await claims.owners()
        for (const head of await journals.all()) {
          const owner = ownerOf(head)
          if (owner !== null) throw new LogInUseError(connection.log, head.name, owner)
          // Entries that the last owner has committed and not appended.
          const journal = journals.of(head.name)
          await journal.read(() => {})
          await journal.write(() => undefined)
        }
        const payloads = new ChunkedPayloads(connection)
        const copies = new DeadLetterCopies(connection, payloads)
        const about = await log.about.read()
        return await NatsCopySource.open(
          { connection, about, positions, payloads, journals, copies, inbox },
          close,
        )
      } catch (error) {
        await close()
        throw error
      }
    })
  }

  async target(): Promise<CopyTarget> {
    return this.#call(() => NatsCopyTarget.open(this.#settings))
  }

  async #call<Result>(effect: () => Promise<Result>): Promise<Result> {
    try {
      return await effect()
    } catch (error) {
      throw serverError(logName(this.#settings.log), error)
    }
  }
}
