/** What the parent gives the pipeline's process, in its environment: a key does not belong on a command line. */
export interface PipelineSettings {
  readonly baseUrl: string
  readonly apiKey: string
  readonly webhookSecret: string
  readonly group: string
  readonly monitor: string
  /** The SQLite file of the sink, the checkpoint and the inbox. */
  readonly state: string
  /** The file to which a line is written for each event that the handler is given. */
  readonly handled: string
  /** Where webhooks come in; 0 takes any free port. */
  readonly port: number
  readonly concurrency: number
}

/** What the pipeline's process tells its parent. */
export type PipelineMessage =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'handled'; readonly count: number; readonly rssMb: number }
