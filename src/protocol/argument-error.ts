/**
 * An argument that cannot be right, refused at the call and before any request.
 *
 * `argument` names it (`advanced_settings.location`), `value` is what was given.
 */
export class ArgumentError extends TypeError {
  override readonly name = 'ArgumentError'
  readonly argument: string
  readonly value: unknown

  constructor(argument: string, expected: string, value: unknown) {
    super(`${argument} must be ${expected}, got ${describe(value)}`)
    this.argument = argument
    this.value = value
  }
}

function describe(value: unknown): string {
  if (typeof value === 'string')
    return value.length > 60 ? `${JSON.stringify(value.slice(0, 60))}…` : JSON.stringify(value)
  if (value === null || typeof value !== 'object') return String(value)
  return Array.isArray(value) ? `an array of ${value.length}` : 'an object'
}
