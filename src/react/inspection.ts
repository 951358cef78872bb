import type { LiveStatus } from '../live/live.ts'

/** What a connection lets developers see. Times in Unix ms. */
export interface Inspectable {
  readonly inspect: {
    subscribe(listener: (inspection: Inspection) => void): () => void
    getSnapshot(): Inspection
  }
}

export interface Inspection {
  readonly role: 'idle' | 'alone' | 'leader' | 'follower'
  readonly followers: number
  readonly connection?: {
    readonly state: 'connecting' | 'open' | 'waiting'
    readonly since: number
    readonly lastBytes: number
    readonly behind: number
    readonly failures: number
  }
  readonly views: readonly InspectedView[]
}

export interface InspectedView {
  readonly address: string
  readonly status: LiveStatus
  readonly position: string | undefined
  readonly rows: number
  readonly gaps: number
  readonly lastEvent: number
  readonly listeners: number
}
