// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package io.redlatch.spring.integration;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.redlatch.Wait;
import io.redlatch.Wait.Worker;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.integration.aggregator.AggregatingMessageHandler;
import org.springframework.integration.aggregator.DefaultAggregatingMessageGroupProcessor;
import org.springframework.integration.channel.QueueChannel;
import org.springframework.integration.store.SimpleMessageStore;
import org.springframework.integration.support.MessageBuilder;
import org.springframework.integration.util.UUIDConverter;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHandlingException;

/** Spring's aggregators of two programs, with a store that they share. */
class AggregatorTest extends RegistriesTest {
  private static final String GROUP = "order 17";
  private static final String KEY = UUIDConverter.getUUID(GROUP).toString();

  private final SimpleMessageStore store = new SimpleMessageStore();
  private final QueueChannel output = new QueueChannel();

  private AggregatingMessageHandler aggregator(RedlatchLockRegistry registry) {
    AggregatingMessageHandler handler =
        new AggregatingMessageHandler(new DefaultAggregatingMessageGroupProcessor(), store);
    handler.setLockRegistry(registry);
    handler.setOutputChannel(output);
    handler.setBeanFactory(new DefaultListableBeanFactory());
    handler.afterPropertiesSet();
    return handler;
  }

  private static Message<String> part(int number) {
    return MessageBuilder.withPayload("part " + number)
        .setCorrelationId(GROUP)
        .setSequenceNumber(number)
        .setSequenceSize(2)
        .build();
  }

  private static Worker<?> handling(AggregatingMessageHandler handler, int number) {
    return Worker.doing(() -> handler.handleMessage(part(number)));
  }

  @Test
  void groupIsHandledByOneProgramAtATime() throws Exception {
    aggregator(registry).handleMessage(part(1));
    other.obtain(KEY).lock();
    Worker<?> waiter = handling(aggregator(registry), 2);
    Wait.until(() -> waiting(KEY) == 1);
    assertEquals(1, store.messageGroupSize(GROUP));
    assertNull(output.receive(0));
    other.obtain(KEY).unlock();
    waiter.end();
    assertEquals(List.of("part 1", "part 2"), output.receive(0).getPayload());
  }

  @Test
  void interruptEndsTheWaitOfAnAggregator() {
    other.obtain(KEY).lock();
    Worker<?> waiter = handling(aggregator(registry), 1);
    Wait.until(() -> waiting(KEY) == 1);
    waiter.thread.interrupt();
    MessageHandlingException failure =
        assertThrows(MessageHandlingException.class, waiter::end);
    assertEquals(InterruptedException.class, failure.getCause().getClass());
    Wait.until(() -> waiting(KEY) == 0);
    assertEquals(0, store.messageGroupSize(GROUP));
  }
}
