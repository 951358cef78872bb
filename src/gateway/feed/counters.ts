import type { RefusalCode } from '../../protocol/live.ts'
import { ignoringErrors, Observers } from '../../protocol/observers.ts'
import type { GatewayEndpoint, GatewayObserver } from '../observer.ts'

/** Counts the work of a gateway, for its observers. */
export class Counters {
  readonly observers = new Observers<GatewayObserver>({
    request: true,
    refused: true,
    connected: true,
    encoded: true,
    sent: true,
  })

  /** Frames with rows were encoded. */
  encoded(bytes: number): void {
    if (!this.observers.isEmpty) this.observers.notify((observer) => observer.encoded?.(bytes))
  }

  /** A client has taken frames. */
  sent(bytes: number): void {
    if (!this.observers.isEmpty) this.observers.notify((observer) => observer.sent?.(bytes))
  }

  refused(endpoint: GatewayEndpoint, code: RefusalCode): void {
    this.observers.notify((observer) => observer.refused?.({ endpoint, code }))
  }

  /** A stream has begun. Returns a function to call when it has ended. */
  connected(): () => void {
    const ends = this.observers.notify((observer) => observer.connected?.())
    return () => {
      for (const end of ends) ignoringErrors(end)
    }
  }
}
