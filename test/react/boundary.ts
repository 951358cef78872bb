import { Component } from 'react'
import type { ReactNode } from 'react'

/** Shows the message of an error that its children throw, until it is reset. */
export class Boundary extends Component<
  { readonly children: ReactNode; readonly onCaught?: (error: Error) => void },
  { readonly error?: Error }
> {
  override state: { readonly error?: Error } = {}
  static getDerivedStateFromError = (error: Error) => ({ error })
  override componentDidCatch = (error: Error) => this.props.onCaught?.(error)
  readonly reset = () => this.setState({ error: undefined })
  override render = () => this.state.error?.message ?? this.props.children
}
