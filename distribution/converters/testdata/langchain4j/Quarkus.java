@RegisterAiService(tools = {Calendar.class, Weather.class}, retrievalAugmentor = Documents.class)
@ApplicationScoped
public interface Planner {
    @SystemMessage(fromResource = "planner.txt")
    @UserMessage("Plan a trip to {city} for {days} days. {#if hot}Swim.{/if}")
    Multi<String> plan(@MemoryId Object id, String city, int days, LocalDate from);
}

class Calendar {
    @Tool("The appointments of a day")
    @Transactional
    public List<String> appointments(LocalDate day) { return List.of(); }
}
