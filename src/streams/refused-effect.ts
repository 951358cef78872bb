/** An effect of a callback that is refused. Its text becomes the message of a `ProcessError`. */
export class RefusedEffect extends Error {
  override readonly name = 'RefusedEffect'
}
