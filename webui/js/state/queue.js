// Messages written while a task works: kept per conversation, also over a reload, and sent one by one.
//
// Two tabs may look at one conversation; a message is taken out of the storage before it is sent, under a lock where
// the browser has one, so that it goes out once.

import { signal } from "../../vendor/signals.js";
import { keepList, onOtherTab, recallList } from "./storage.js";

const key = (id) => `queue.${id}`;

export class Queue {
  constructor(conversationId) {
    this.key = key(conversationId);
    this.items = signal(recallList(this.key));
    onOtherTab((changed) => changed === this.key && (this.items.value = recallList(this.key)));
  }

  add(text) {
    this.#set([...recallList(this.key), text]);
  }

  remove(index) {
    this.#set(recallList(this.key).filter((_, i) => i !== index));
  }

  /** The first message, taken out; null when there is none (any more). */
  async take() {
    const locked = navigator.locks ? (work) => navigator.locks.request(`ducklm.${this.key}`, work) : (work) => work();
    return locked(() => {
      const [first, ...rest] = recallList(this.key);
      if (first === undefined) return null;
      this.#set(rest);
      return first;
    });
  }

  #set(list) {
    keepList(this.key, list);
    this.items.value = list;
  }
}
