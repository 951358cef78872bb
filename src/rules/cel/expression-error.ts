/** An error in an expression, and its position. */
export interface ExpressionProblem {
  /** One sentence, with the correction if it is known. */
  readonly message: string
  /** Start in the text, in characters (UTF-16 code units). */
  readonly offset: number
  /** Length in characters. 0 for the end of the text. */
  readonly length: number
}

/** An expression or a template is wrong. `problems` has at least one, in the order of the text. */
export class ExpressionError extends Error {
  override readonly name = 'ExpressionError'
  readonly problems: readonly ExpressionProblem[]

  constructor(problems: readonly ExpressionProblem[]) {
    super(problems.map(({ message }) => message).join(' '))
    this.problems = problems
  }
}
