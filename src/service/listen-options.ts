/** The address on which the service listens. */
export interface ListenOptions {
  /** Port. Default 0: any free port. */
  readonly port?: number
  /** Host name or address. Default `127.0.0.1`. */
  readonly host?: string
  /** Whether a host that other machines can reach is allowed. Default false. */
  readonly allowRemote?: boolean
}
