import { inspect, types } from 'node:util'

/**
 * Channel: how a mechanism reports what happened without knowing who listens. Publishing to nobody costs one
 * comparison. A listener that throws is reported as a process warning and stops nothing: telemetry must never
 * decide the fate of a request.
 */
export class Channel<Message> {
  #subscriptions: { readonly listener: (message: Message) => void }[] = []

  subscribe(listener: (message: Message) => void): () => void {
    const subscription = { listener }
    this.#subscriptions = [...this.#subscriptions, subscription]
    return () => {
      this.#subscriptions = this.#subscriptions.filter(other => other !== subscription)
    }
  }

  publish(message: Message): void {
    for (const { listener } of this.#subscriptions) {
      try {
        listener(message)
      } catch (error) {
        process.emitWarning(
          types.isNativeError(error) ? error : inspect(error, { customInspect: false }),
          'ChannelListenerWarning',
        )
      }
    }
  }
}
